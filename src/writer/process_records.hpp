// Records of events in a process' life that are written once, when they happen: names
// that its threads are given, programs that it executes, its end. They do nothing in a
// process that has not joined a session.
#pragma once

#include <cstdint>

namespace arctrace {

// The calling thread is now called `name`; null or "": what the kernel calls it.
void record_own_name(const char* name);

// Thread `tid` of this process is now called `name`.
void record_name_of(uint32_t tid, const char* name);

// The process is about to execute `path`, which can't be traced. `why`: enum
// arctrace_untraced.
void record_untraced(const char* path, uint32_t why);

// The process ends. `how`: enum arctrace_process_end; `status`: its exit status, or -1.
// Called around an exec, it does nothing in a child that borrows this process' memory.
void record_process_end(uint32_t how, int32_t status);

// The process enters a phase of its life (enum arctrace_phase_of_life).
void record_phase(uint32_t phase);

// The process has made the child `pid`, which is none of the program's, but the tracer's.
void record_helper(uint32_t pid);

// Process `pid`, or the calling one if that is 0, executes a program; `ticks`: when, 0:
// now. If it is another process, that was at `ticks` or up to now.
void note_exec(uint32_t pid, uint64_t ticks);

}  // namespace arctrace
