// Options that several subcommands have.
#pragma once

#include <absl/status/statusor.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace arctrace::cli {

enum class Format : uint8_t { kText, kJson };

// The positional FILE, the default file if it is not given.
CLI::Option* add_file_option(CLI::App& app, std::string& path);
// --format=text|json
CLI::Option* add_format_option(CLI::App& app, Format& format);

// For unsigned numbers: CLI11 takes -1 for the largest one.
CLI::Validator not_negative();

// A span of time relative to the session's start.
struct TimeRange {
  int64_t from_ns = INT64_MIN;
  int64_t until_ns = INT64_MAX;  // exclusive
};

// -r, --time-range START~STOP
CLI::Option* add_time_range_option(CLI::App& app, TimeRange& range);

// "1.5ms", "2s", "0"; an error says what is wrong.
absl::StatusOr<int64_t> parse_time_ns(std::string_view text);
// "1ms~2s", "~2s", "1ms~"
absl::StatusOr<TimeRange> parse_time_range(std::string_view text);

}  // namespace arctrace::cli
