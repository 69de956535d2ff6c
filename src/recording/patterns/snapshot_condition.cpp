// Conditions are read from their ends, because patterns may have spaces and any signs.
#include "src/recording/patterns/snapshot_condition.hpp"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "src/recording/patterns/amounts.hpp"
#include "src/shim_protocol/call_condition.hpp"

namespace arctrace::recording {
namespace {

constexpr const char* kForms =
    "not a condition such as \"FUNCTION > 20ms\", \"FUNCTION returns < 0\" or "
    "\"FUNCTION = NULL\"";

// A word of the text, and where it begins.
struct Word {
  std::string_view text;
  size_t at = 0;
};

// Takes the last word of `text`, and the spaces around it.
Word take_last(std::string_view& text) {
  const auto trim = [&text] {
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  };
  trim();
  const size_t space = text.rfind(' ');
  const size_t at = space == std::string_view::npos ? 0 : space + 1;
  const Word word{text.substr(at), at};
  text = text.substr(0, at);
  trim();
  return word;
}

using Compare = shim::CallCondition::Compare;

std::optional<Compare> compare_of(std::string_view sign) {
  constexpr std::array<std::pair<std::string_view, Compare>, 7> kSigns = {
      {{"<", Compare::kLess},
       {"<=", Compare::kLessOrEqual},
       {">", Compare::kMore},
       {">=", Compare::kMoreOrEqual},
       {"=", Compare::kEqual},
       {"==", Compare::kEqual},
       {"!=", Compare::kOther}}};
  for (const auto& [text, compare] : kSigns) {
    if (text == sign) return compare;
  }
  return std::nullopt;
}

// The type after "returns/": i8 to i64, u8 to u64.
bool read_type(std::string_view type, shim::CallCondition& condition) {
  if (type.empty() || (type[0] != 'i' && type[0] != 'u')) return false;
  condition.is_signed = type[0] == 'i';
  const std::string_view bits = type.substr(1);
  if (bits != "8" && bits != "16" && bits != "32" && bits != "64") return false;
  int number = 0;
  if (!absl::SimpleAtoi(std::string(bits), &number)) return false;
  condition.size = static_cast<uint8_t>(number / 8);
  return true;
}

std::optional<uint64_t> read_number(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  if (is_negative) text.remove_prefix(1);
  uint64_t value = 0;
  const bool is_read = text.starts_with("0x")
                           ? absl::SimpleHexAtoi(std::string(text), &value)
                           : !text.empty() && text[0] != '+' && text[0] != '-' &&
                                 absl::SimpleAtoi(std::string(text), &value);
  if (!is_read || (is_negative && value > uint64_t{1} << 63)) return std::nullopt;
  return is_negative ? 0 - value : value;
}

std::variant<SnapshotCondition, Problem> finish(std::string_view pattern,
                                                const shim::CallCondition& condition) {
  if (pattern.empty()) return Problem{0, "no function before the condition"};
  const shim::CallConditionCode code = encode_call_condition(condition);
  return SnapshotCondition{std::string(pattern), std::string(code.text)};
}

}  // namespace

std::variant<SnapshotCondition, Problem> parse_snapshot_condition(
    const std::string& text) {
  std::string_view rest = text;
  const Word value = take_last(rest);
  const Word sign = take_last(rest);
  const std::optional<Compare> compare = compare_of(sign.text);
  if (!compare) return Problem{sign.at, kForms};
  shim::CallCondition condition;
  condition.compare = *compare;
  std::string_view before = rest;
  const Word last = take_last(before);
  constexpr std::string_view kReturns = "returns";
  const bool has_type = last.text.starts_with("returns/");
  const bool of_result = last.text == kReturns || has_type;
  if (of_result || value.text == "NULL") {
    condition.is_result = true;
    condition.size = value.text == "NULL" ? 8 : 4;
    condition.is_signed = value.text != "NULL";
    if (has_type && !read_type(last.text.substr(kReturns.size() + 1), condition)) {
      return Problem{last.at + kReturns.size() + 1,
                     "not a type: i8, i16, i32, i64, u8, u16, u32 or u64"};
    }
    const std::optional<uint64_t> number =
        value.text == "NULL" ? uint64_t{0} : read_number(value.text);
    if (!number) return Problem{value.at, "not a number such as -1 or 0x10, nor NULL"};
    condition.value = *number;
    return finish(of_result ? before : rest, condition);
  }
  if (*compare != Compare::kMore && *compare != Compare::kMoreOrEqual) {
    return Problem{sign.at,
                   "a call's time is compared by > or >=, what it returns after the word "
                   "\"returns\""};
  }
  const absl::StatusOr<int64_t> time = parse_time_ns(value.text);
  if (!time.ok() || *time < 0) return Problem{value.at, "not a time such as 20ms"};
  condition.value = static_cast<uint64_t>(*time);
  return finish(rest, condition);
}

}  // namespace arctrace::recording
