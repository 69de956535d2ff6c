// Lines of a source file, as far as it is on this machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace arctrace::reader {

// Up to `count` lines from line `first` (1: the first one) on, each valid UTF-8 without
// control characters, and cut if it is long. Empty if `path` is not absolute, or no
// regular file that can be read, or shorter: the path comes from the debug data of a
// program that nobody vouches for. Reads 8 MiB at most.
std::vector<std::string> source_text(const std::string& path, uint32_t first,
                                     uint32_t count);

}  // namespace arctrace::reader
