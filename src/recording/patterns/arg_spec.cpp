// Parses amounts, specs of arguments and return values, and conditions on calls.
#include "src/recording/patterns/arg_spec.hpp"

#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/time/time.h>
#include <arctrace/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/shim_protocol/arg_spec_code.hpp"
#include "src/shim_protocol/options.hpp"

namespace arctrace::recording {

absl::StatusOr<uint64_t> parse_size(std::string_view text) {
  const auto error = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", std::string(text), "\" is not a size such as 64k or 1.5G"));
  };
  const size_t digits = text.find_first_not_of("0123456789.");
  const std::string_view number = text.substr(0, digits);
  double value = 0;
  if (!absl::SimpleAtod(std::string(number), &value)) return error();
  std::string unit =
      absl::AsciiStrToLower(std::string(text.substr(std::min(digits, text.size()))));
  if (unit.ends_with("ib") && unit.size() == 3) {
    unit.resize(1);
  } else if (unit.ends_with('b')) {
    unit.pop_back();
  }
  constexpr std::string_view kUnits = "kmgtpe";
  if (unit.size() > 1 || (!unit.empty() && kUnits.find(unit[0]) == kUnits.npos)) {
    return error();
  }
  const size_t power = unit.empty() ? 0 : kUnits.find(unit[0]) + 1;
  value = std::ldexp(value, static_cast<int>(10 * power));
  if (value >= 0x1p63) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", std::string(text), "\" is too large"));
  }
  return static_cast<uint64_t>(value);
}

absl::StatusOr<int64_t> parse_time_ns(std::string_view text) {
  absl::Duration duration;
  if (!absl::ParseDuration({text.data(), text.size()}, &duration)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", std::string(text), "\" is not a time such as 1.5ms, 20us, 300ns or 2s"));
  }
  return absl::ToInt64Nanoseconds(duration);
}

namespace {

struct Format {
  char letter;
  uint8_t kind;  // enum arctrace_value_kind, or ARCTRACE_SHIM_STD_STRING
};
// The letters that uftrace uses.
constexpr Format kFormats[] = {
    {'d', ARCTRACE_VALUE_SIGNED},   {'i', ARCTRACE_VALUE_SIGNED},
    {'u', ARCTRACE_VALUE_UNSIGNED}, {'x', ARCTRACE_VALUE_HEX},
    {'o', ARCTRACE_VALUE_OCTAL},    {'c', ARCTRACE_VALUE_CHAR},
    {'p', ARCTRACE_VALUE_POINTER},  {'s', ARCTRACE_VALUE_STRING},
    {'f', ARCTRACE_VALUE_FLOAT},    {'b', ARCTRACE_VALUE_BOOL},
    {'S', ARCTRACE_SHIM_STD_STRING}};
constexpr unsigned kArgumentsMax =
    ARCTRACE_SHIM_ARGUMENTS_MAX + ARCTRACE_SHIM_STACK_WORDS_MAX;
constexpr unsigned kFloatsMax = ARCTRACE_SHIM_VECTORS_MAX + ARCTRACE_SHIM_STACK_WORDS_MAX;
constexpr unsigned kValuesMax = ARCTRACE_SHIM_RECORDED_ARGS_MAX;
constexpr std::string_view kResult = "retval";
constexpr std::string_view kArgument = "arg";
constexpr std::string_view kFloat = "fparg";

// The sizes that may follow a format's letter.
std::vector<std::string> sizes_of(uint8_t kind) {
  switch (kind) {
    case ARCTRACE_VALUE_FLOAT:
      return {"32", "64"};
    case ARCTRACE_VALUE_SIGNED:
    case ARCTRACE_VALUE_UNSIGNED:
    case ARCTRACE_VALUE_HEX:
    case ARCTRACE_VALUE_OCTAL:
      return {"8", "16", "32", "64"};
    default:
      return {};
  }
}

uint8_t usual_size(uint8_t kind) {
  return kind == ARCTRACE_VALUE_CHAR || kind == ARCTRACE_VALUE_BOOL ? 1 : 8;
}

// The number that the text is; 0: it is none.
unsigned number_of(std::string_view text) {
  unsigned number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc() && read.ptr == text.data() + text.size() ? number : 0;
}

// The offset of a problem is that in `name`.
std::optional<Problem> parse_name(std::string_view name, bool of_result,
                                  arctrace_shim_arg_spec& value) {
  if (of_result) {
    if (name == kResult) return std::nullopt;
    return Problem{0, "not retval"};
  }
  const bool is_float = name.starts_with(kFloat);
  if (!is_float && !name.starts_with(kArgument)) {
    return Problem{0, "not an argument such as arg1 or fparg1"};
  }
  const size_t digits = is_float ? kFloat.size() : kArgument.size();
  const unsigned most = is_float ? kFloatsMax : kArgumentsMax;
  if (is_float) value.kind = ARCTRACE_VALUE_FLOAT;
  const unsigned number = number_of(name.substr(digits));
  if (number < 1 || number > most) {
    return Problem{digits, absl::StrCat("not a number from 1 to ", most)};
  }
  value.argument = static_cast<uint8_t>(number);
  return std::nullopt;
}

// `size`: in bits, from `offset` on.
std::optional<Problem> parse_size(std::string_view size, size_t offset,
                                  arctrace_shim_arg_spec& value) {
  if (size.empty()) return std::nullopt;
  const std::vector<std::string> sizes = sizes_of(value.kind);
  if (sizes.empty()) return Problem{offset, "this format has no size"};
  if (std::find(sizes.begin(), sizes.end(), size) == sizes.end()) {
    return Problem{offset, absl::StrCat("not a size: ", absl::StrJoin(sizes, " "))};
  }
  value.size = static_cast<uint8_t>(number_of(size) / 8);
  return std::nullopt;
}

std::optional<Problem> parse_format(std::string_view format,
                                    arctrace_shim_arg_spec& value) {
  if (format.empty()) return Problem{0, "no format after the /"};
  const bool is_float = value.kind == ARCTRACE_VALUE_FLOAT;  // by its name
  // uftrace's floats need no letter.
  if (is_float && std::isdigit(static_cast<unsigned char>(format[0])) != 0) {
    return parse_size(format, 0, value);
  }
  const auto* found =
      std::find_if(std::begin(kFormats), std::end(kFormats),
                   [&](const Format& known) { return known.letter == format[0]; });
  if (found == std::end(kFormats)) {
    return Problem{0, "not a format: d i u x o c p s S b f"};
  }
  if (is_float != (found->kind == ARCTRACE_VALUE_FLOAT) && value.argument != 0) {
    return Problem{0, is_float ? "fparg1 is of format f"
                               : "floating-point arguments are fparg1, fparg2 ..."};
  }
  value.kind = found->kind;
  value.size = usual_size(value.kind);
  return parse_size(format.substr(1), 1, value);
}

// Calls `put` for each value until one is wrong.
std::optional<Problem> parse(
    const std::string& spec, bool of_result,
    const std::function<void(const arctrace_shim_arg_spec&)>& put) {
  size_t at = spec.rfind('@');
  if (at == std::string::npos) return std::nullopt;  // the types have them
  unsigned count = 0;
  do {
    ++at;
    const size_t end = std::min(spec.find(',', at), spec.size());
    const std::string_view item = std::string_view(spec).substr(at, end - at);
    const size_t slash = std::min(item.find('/'), item.size());
    arctrace_shim_arg_spec value = {.kind = ARCTRACE_VALUE_SIGNED,
                                    .argument = 0,
                                    .size = 8,
                                    .failure = ARCTRACE_SHIM_FAILS_NEVER};
    std::optional<Problem> problem = parse_name(item.substr(0, slash), of_result, value);
    if (!problem && slash < item.size()) {
      problem = parse_format(item.substr(slash + 1), value);
      if (problem) problem->first += slash + 1;
    }
    if (!problem && ++count > (of_result ? 1 : kValuesMax)) {
      problem = Problem{0, "more values than there are"};
    }
    if (problem) return Problem{at + problem->first, problem->second};
    put(value);
    at = end;
  } while (at < spec.size());
  return std::nullopt;
}

}  // namespace

std::optional<Problem> arg_spec_problem(const std::string& spec, bool of_result) {
  return parse(spec, of_result, [](const arctrace_shim_arg_spec&) {});
}

std::string encoded_arg_specs(const std::string& spec, bool of_result) {
  if (spec.rfind('@') == std::string::npos) {
    return {of_result ? shim::kTypedRetval : shim::kTypedArgs};
  }
  std::string text;
  parse(spec, of_result, [&text](const arctrace_shim_arg_spec& value) {
    text.append(shim::encode_arg_spec(value).text, shim::kArgSpecSize);
  });
  return text;
}

// Conditions are read from their ends, because patterns may have spaces and any signs.

namespace {

constexpr const char* kForms =
    "not a condition such as \"FUNCTION > 20ms\", \"FUNCTION returns < 0\" or "
    "\"FUNCTION = NULL\"";

// A word of the text, and where it begins.
struct Word {
  std::string_view text;
  size_t at = 0;
};

// Removes the last word of `text`, and the spaces around it, and returns it.
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

struct SplitCondition {
  std::string_view before;
  Word sign, value;
};

// Whether a sign that follows this text without a space may be part of a function's name:
// of an operator, or of template arguments.
bool may_go_on(std::string_view name) {
  return name.ends_with("operator") || name.ends_with('-') ||
         std::count(name.begin(), name.end(), '<') !=
             std::count(name.begin(), name.end(), '>');
}

// Splits a condition that has no spaces around its sign, as in "f>20ms".
std::variant<SplitCondition, Problem> split_without_spaces(std::string_view text,
                                                           const Problem& none) {
  constexpr std::string_view kSigns = "<>=!";
  const size_t last = text.find_last_of(kSigns);
  if (last == std::string_view::npos) return none;
  const size_t before = text.substr(0, last).find_last_not_of(kSigns);
  const size_t first = before == std::string_view::npos ? 0 : before + 1;
  std::string_view value = text.substr(last + 1);
  const size_t blanks = std::min(value.find_first_not_of(' '), value.size());
  value.remove_prefix(blanks);
  while (value.ends_with(' ')) value.remove_suffix(1);
  if (value.empty() || value.find(' ') != std::string_view::npos) return none;
  const std::string_view sign = text.substr(first, last + 1 - first);
  std::string_view name = text.substr(0, first);
  if (!compare_of(sign) || may_go_on(name)) {
    return Problem{first,
                   "the sign may be a part of the name: put spaces around it, as "
                   "in \"FUNCTION > 20ms\""};
  }
  while (name.ends_with(' ')) name.remove_suffix(1);
  return SplitCondition{name, {sign, first}, {value, last + 1 + blanks}};
}

// A sign between spaces is one whatever stands before it.
std::variant<SplitCondition, Problem> split_at_sign(std::string_view text) {
  std::string_view rest = text;
  const Word value = take_last(rest);
  const Word sign = take_last(rest);
  if (compare_of(sign.text)) return SplitCondition{rest, sign, value};
  return split_without_spaces(text, Problem{sign.at, kForms});
}

}  // namespace

std::variant<SnapshotCondition, Problem> parse_snapshot_condition(
    const std::string& text) {
  const std::variant<SplitCondition, Problem> split = split_at_sign(text);
  if (const auto* problem = std::get_if<Problem>(&split)) return *problem;
  const auto& [rest, sign, value] = std::get<SplitCondition>(split);
  const std::optional<Compare> compare = compare_of(sign.text);
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
