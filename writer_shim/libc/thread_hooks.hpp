// Threads: each takes its place in the session when it starts, and its name when it gets
// one.
#pragma once

namespace arctrace::shim {

void prepare_thread_hooks();

}  // namespace arctrace::shim
