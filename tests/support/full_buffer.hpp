// Takes all the room that the session's buffer has left.
#pragma once

namespace arctrace::testing {

// By a thread of its own, in blocks of its own and in the shared chain. REQUIRES: the
// process has joined, and nobody drains the buffer meanwhile.
void fill_buffer();

}  // namespace arctrace::testing
