// Unpacking of .gnu_debugdata.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace arctrace::reader {

// Unpacks one .xz stream. Nothing if it is damaged, or unpacks to more than `size_max`
// bytes, or needs more than 128 MiB (xz -9 needs 65) to be unpacked.
std::optional<std::string> unpack_xz_untrusted(const std::string& packed,
                                               size_t size_max);

}  // namespace arctrace::reader
