// What a process tells of itself as it happens, and does not say again: names that its
// threads are given, what it executes, its end. In a process without a session they do
// nothing.
#pragma once

#include <cstdint>

namespace arctrace {

// The calling thread is now called `name`; null or "": what the kernel calls it.
void record_own_name(const char* name);

// Thread `tid` of this process is now called `name`.
void record_name_of(uint32_t tid, const char* name);

// The process is about to execute `path`, which can't be traced: enum arctrace_untraced.
void record_untraced(const char* path, uint32_t why);

// enum arctrace_process_end, and its status or -1. Around an exec, in a child that
// borrows this process' memory it does nothing.
void record_process_end(uint32_t how, int32_t status);

}  // namespace arctrace
