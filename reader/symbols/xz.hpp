// Unpacks the section .gnu_debugdata.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace arctrace::reader {

// Unpacks one .xz stream. nullopt if it is damaged, has more than `size_max` bytes, or
// takes more than 128 MiB of memory (xz -9 takes 65).
std::optional<std::string> unpack_xz_untrusted(const std::string& packed,
                                               size_t size_max);

}  // namespace arctrace::reader
