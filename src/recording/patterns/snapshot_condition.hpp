// --snapshot-when: which calls have the flight recorder take a snapshot when they end.
#pragma once

#include <string>
#include <variant>

#include "src/recording/patterns/arg_spec.hpp"

namespace arctrace::recording {

// "PATTERN > 20ms", "PATTERN returns < 0", "PATTERN = NULL".
struct SnapshotCondition {
  std::string pattern;  // of functions, as for -F
  std::string code;     // for the shim (src/shim_protocol/call_condition.hpp)
};

// The condition, or what is wrong with the text and where. Patterns are not checked.
std::variant<SnapshotCondition, Problem> parse_snapshot_condition(
    const std::string& text);

}  // namespace arctrace::recording
