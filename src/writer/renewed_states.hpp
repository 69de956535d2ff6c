// The states of threads when their process leaves its session for another one.
#pragma once

namespace arctrace {

// Whether a thread is in a writer call, or lends its storage to another task. REQUIRES:
// the other threads stand still outside of the functions of this library.
bool is_any_thread_writing();

// Clears the states of all threads, so that the next record of each attaches it anew, to
// the session that the process has joined by then. What returns to the shim's stubs still
// does, unrecorded. REQUIRES: no thread is in a writer call or begins one.
void renew_thread_states();

}  // namespace arctrace
