// Takes all free space of the session's buffer.
#pragma once

namespace arctrace::testing {

// Writes from a thread of its own until the buffer is full, into blocks of its own and
// into the shared chain. REQUIRES: the process has joined, and nobody drains the buffer
// meanwhile.
void fill_buffer();

}  // namespace arctrace::testing
