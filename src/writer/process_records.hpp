// Records about the process itself: the modules that it has loaded (the program, its
// libraries and the vdso, each with its build-id), and events of its lifetime when they
// happen: names of its threads, programs that it executes, its end. The latter functions
// do nothing in a process that has not joined a session.
#pragma once

#include <cstdint>

namespace arctrace::writer {

// Compares the loader's modules with the defined ones and defines the difference (MODULE;
// MODULE_GONE at `ticks`). Takes the loader's lock, so never on the hot path and never in
// a fork child. `first`: the modules of the process' start are valid since then.
void scan_modules(uint64_t ticks, bool first);

// Defines how functions of the module at the address of this one are hooked (HOOKED), as
// long as the module stays; the first kind counts. Nothing is done if the module is not
// defined. As scan_modules(), under the loader's lock.
void define_hooked(uint32_t kind, uint64_t function, uint64_t ticks);

// The calling thread is now called `name`; null or "": the kernel's name for it.
void record_own_name(const char* name);

// Thread `tid` of this process is now called `name`.
void record_name_of(uint32_t tid, const char* name);

// The process is about to execute `path`, which can't be traced. `why`: enum
// arctrace_untraced.
void record_untraced(const char* path, uint32_t why);

// The calling thread ends. A thread that has written no definitions is not known, and
// writes nothing.
void record_thread_end();

// The process ends. `how`: enum arctrace_process_end; `status`: its exit status, or -1.
// Called around an exec, it does nothing in a child that borrows this process' memory.
void record_process_end(uint32_t how, int32_t status);

// The process enters a phase of its lifetime (enum arctrace_phase_of_life).
void record_phase(uint32_t phase);

// A time, by the clocks that a session may have.
struct ClockTimes {
  uint64_t by_counter;
  uint64_t monotonic_ns;
};
ClockTimes times_now();

// Which start of the tracer is told: the one with which a thread begins to record, or a
// later one of the process' first thread.
enum class TracerStart : uint8_t { kFirst, kLater };

// The calling thread has only started the tracer from then on.
void record_start(TracerStart which, const ClockTimes& began);

// The process has made the child `pid`, which is none of the program's, but the tracer's.
void record_helper(uint32_t pid);

// Process `pid`, or the calling one if that is 0, executes a program at `ticks` (0: now).
// If it is another process, the time was between `ticks` and now.
void note_exec(uint32_t pid, uint64_t ticks);

}  // namespace arctrace::writer
