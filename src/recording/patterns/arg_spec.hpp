// Parses texts about calls in options: amounts, arguments and return values, and
// conditions. Errors quote the text and say what it should be.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "src/recording/patterns/function_pattern.hpp"

namespace arctrace::recording {

// Parses a number of bytes: "512", "64k", "1.5G", "2MiB"; the units k, m, g, t, p, e are
// powers of 1024.
absl::StatusOr<uint64_t> parse_size(std::string_view text);

// Parses a time in nanoseconds: "1.5ms", "2s", "-1us", "0".
absl::StatusOr<int64_t> parse_time_ns(std::string_view text);

// Arguments and return values as the user of -A and -R writes them:
// PATTERN@arg1/s,arg2/i32,fparg1/f64 and PATTERN@retval/p. A PATTERN alone means the
// values that the types of the functions have.

// What is wrong after the pattern of `spec`; `of_result`: it must be of -R, not of -A.
std::optional<Problem> arg_spec_problem(const std::string& spec, bool of_result);

// The spec as the shim takes it (Pattern::arg_specs). REQUIRES: no problem.
std::string encoded_arg_specs(const std::string& spec, bool of_result);

// --snapshot-when: the calls that have the flight recorder take a snapshot when they end:
// "PATTERN > 20ms", "PATTERN returns < 0", "PATTERN = NULL".
struct SnapshotCondition {
  std::string pattern;  // of functions, as for -F
  std::string code;     // for the shim (src/shim_protocol/arg_spec_code.hpp)
};

// The condition, or what is wrong with the text and where. Patterns are not checked.
std::variant<SnapshotCondition, Problem> parse_snapshot_condition(
    const std::string& text);

}  // namespace arctrace::recording
