// The kinds follow from the rules for libc's functions (src/base/libc_functions.inc). A
// wrong rule there breaks the programs that call the function.
#include "src/shim_protocol/call_kinds.hpp"

#include <array>
#include <cstddef>

#include "src/base/libc_functions.hpp"
#include "src/base/text.hpp"

namespace arctrace::shim {
namespace {

struct NamedRule {
  LibcFunctionName name;
  CallRule rule;
};

constexpr auto kRules = [] {
  constexpr auto has_rule = [](const LibcFunction& function) {
    return function.rule != CallRule::kOrdinary;
  };
  constexpr auto count = static_cast<size_t>(
      std::count_if(std::begin(kLibcFunctions), std::end(kLibcFunctions), has_rule));
  std::array<NamedRule, count> rules{};
  size_t used = 0;
  for (const LibcFunction& function : kLibcFunctions) {
    if (has_rule(function))
      rules[used++] = {LibcFunctionName::of(function), function.rule};
  }
  return rules;
}();

CallRule rule_of(const char* name) {
  for (const NamedRule& entry : kRules) {
    if (equal(entry.name.text, name)) return entry.rule;
  }
  // These are hooks of gcc's instrumentation, and its runtime of transactions.
  if (starts_with(name, "__cyg_profile_") || starts_with(name, "_ITM_")) {
    return CallRule::kSkipped;
  }
  return CallRule::kOrdinary;
}

}  // namespace

CallKind call_kind(const char* name) {
  switch (rule_of(name)) {
    case CallRule::kOrdinary:
    case CallRule::kCatch:
      break;
    case CallRule::kEntryOnly:
      return CallKind::kEntryOnly;
    case CallRule::kLast:
      return CallKind::kLast;
    case CallRule::kLongJump:
      return CallKind::kLongJump;
    case CallRule::kStacks:
      return CallKind::kStacks;
    case CallRule::kLastSwitch:
      return CallKind::kLastSwitch;
    case CallRule::kFrameAddress:
      return CallKind::kFrameAddress;
    case CallRule::kSkipped:
      return CallKind::kSkipped;
  }
  return CallKind::kUnexamined;
}

CallKind frames_only_call_kind(const char* name) {
  switch (rule_of(name)) {
    case CallRule::kLongJump:
      return CallKind::kFramesOnlyJump;
    case CallRule::kCatch:
      return CallKind::kFramesOnlyCatch;
    case CallRule::kStacks:
    case CallRule::kLastSwitch:
      return CallKind::kFramesOnlyStacks;
    case CallRule::kFrameAddress:
      return CallKind::kFramesOnlyFrameAddress;
    case CallRule::kOrdinary:
    case CallRule::kEntryOnly:
    case CallRule::kLast:
    case CallRule::kSkipped:
      break;
  }
  return CallKind::kSkipped;
}

}  // namespace arctrace::shim
