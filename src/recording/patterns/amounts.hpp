// Amounts as people write them. Errors quote the text and say what it should be.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string_view>

namespace arctrace::recording {

// Bytes: "512", "64k", "1.5G", "2MiB"; the units k, m, g, t, p, e are powers of 1024.
absl::StatusOr<uint64_t> parse_size(std::string_view text);

// Nanoseconds: "1.5ms", "2s", "-1us", "0".
absl::StatusOr<int64_t> parse_time_ns(std::string_view text);

}  // namespace arctrace::recording
