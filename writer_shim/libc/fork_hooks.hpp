// Tells the session of forks: when the thread forked, and which frames it had open then.
// A child has nothing else of this, because fork wipes the states of threads.
#pragma once

namespace arctrace::shim {

// Registers handlers for fork(), and looks up _Fork(), which calls none. To be called
// once.
void prepare_fork_hooks();

// Whether syscall(number) may fork. If so it is to be called between these two, the
// second one where it returns 0.
bool may_fork(long number);
void before_fork();
void in_child_of_syscall(long number, const long* arguments);

}  // namespace arctrace::shim
