// Why a program can't be traced, by its file: for the recorder, which says so of the
// command, and for traced processes that are about to execute it.
#pragma once

#include <cstdint>

namespace arctrace {

// Enum arctrace_untraced, or 0: nothing is in the way, or it can't be executed. Of a
// script: of what runs it. `path` as the calling process sees it. No libc: async-signal
// safe, errno stays.
uint32_t why_untraceable(const char* path);

}  // namespace arctrace
