#include "reader/cli/value_spec.hpp"

#include <absl/strings/str_cat.h>
#include <arctrace/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <string_view>

namespace arctrace::cli {
namespace {

struct Format {
  char letter;
  char kind;  // enum arctrace_value_kind
};
// The letters of uftrace.
constexpr Format kFormats[] = {
    {'d', ARCTRACE_VALUE_SIGNED},   {'i', ARCTRACE_VALUE_SIGNED},
    {'u', ARCTRACE_VALUE_UNSIGNED}, {'x', ARCTRACE_VALUE_HEX},
    {'o', ARCTRACE_VALUE_OCTAL},    {'c', ARCTRACE_VALUE_CHAR},
    {'p', ARCTRACE_VALUE_POINTER},  {'s', ARCTRACE_VALUE_STRING}};
constexpr unsigned kArgumentsMax = 6;
constexpr std::string_view kResult = "retval";
constexpr std::string_view kArgument = "arg";

struct Value {
  unsigned argument = 0;
  char kind = ARCTRACE_VALUE_SIGNED;
  unsigned bytes = 8;
};

// 0: it is none.
unsigned number_of(std::string_view text) {
  unsigned number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc() && read.ptr == text.data() + text.size() ? number : 0;
}

// Places are those in `text`.
std::optional<Problem> parse_name(std::string_view name, bool of_result, Value& value) {
  if (of_result) {
    if (name == kResult) return std::nullopt;
    return Problem{0, "not retval"};
  }
  if (name.starts_with("fparg")) {
    return Problem{0, "floating-point arguments can't be recorded"};
  }
  if (!name.starts_with(kArgument)) return Problem{0, "not an argument such as arg1"};
  value.argument = number_of(name.substr(kArgument.size()));
  if (value.argument >= 1 && value.argument <= kArgumentsMax) return std::nullopt;
  return Problem{kArgument.size(),
                 absl::StrCat("not a number from 1 to ", kArgumentsMax)};
}

std::optional<Problem> parse_format(std::string_view format, Value& value) {
  if (format.empty()) return Problem{0, "no format behind the /"};
  const Format* found = nullptr;
  for (const Format& known : kFormats) {
    if (known.letter == format[0]) found = &known;
  }
  if (format[0] == 'f' || format[0] == 'S') {
    return Problem{0, format[0] == 'f' ? "floating-point values can't be recorded"
                                       : "std::string can't be recorded"};
  }
  if (found == nullptr) return Problem{0, "not a format: d i u x o c p s"};
  value.kind = found->kind;
  if (value.kind == ARCTRACE_VALUE_CHAR) value.bytes = 1;
  if (format.size() == 1) return std::nullopt;
  const bool has_size = value.kind != ARCTRACE_VALUE_CHAR &&
                        value.kind != ARCTRACE_VALUE_POINTER &&
                        value.kind != ARCTRACE_VALUE_STRING;
  const unsigned bits = has_size ? number_of(format.substr(1)) : 0;
  value.bytes = bits / 8;
  if (bits == 8 || bits == 16 || bits == 32 || bits == 64) return std::nullopt;
  return Problem{1, has_size ? "not a size: 8 16 32 64" : "this format has no size"};
}

// Calls `put` for each value until one is wrong.
std::optional<Problem> parse(const std::string& spec, bool of_result,
                             const std::function<void(const Value&)>& put) {
  size_t at = spec.rfind('@');
  if (at == std::string::npos) {
    return Problem{spec.size(), of_result ? "no @retval behind the pattern"
                                          : "no @arg1 behind the pattern"};
  }
  unsigned count = 0;
  do {
    ++at;
    const size_t end = std::min(spec.find(',', at), spec.size());
    const std::string_view item = std::string_view(spec).substr(at, end - at);
    const size_t slash = std::min(item.find('/'), item.size());
    Value value;
    std::optional<Problem> problem = parse_name(item.substr(0, slash), of_result, value);
    if (!problem && slash < item.size()) {
      problem = parse_format(item.substr(slash + 1), value);
      if (problem) problem->first += slash + 1;
    }
    if (!problem && ++count > (of_result ? 1 : kArgumentsMax)) {
      problem = Problem{0, "more values than there are"};
    }
    if (problem) return Problem{at + problem->first, problem->second};
    put(value);
    at = end;
  } while (at < spec.size());
  return std::nullopt;
}

}  // namespace

std::optional<Problem> value_spec_problem(const std::string& spec, bool of_result) {
  return parse(spec, of_result, [](const Value&) {});
}

std::string encoded_values(const std::string& spec) {
  std::string text;
  const bool of_result = spec.compare(spec.rfind('@') + 1, kResult.size(), kResult) == 0;
  parse(spec, of_result, [&text](const Value& value) {
    absl::StrAppend(&text, value.argument,
                    std::string(1, static_cast<char>('a' + value.kind)), value.bytes,
                    "0");
  });
  return text;
}

}  // namespace arctrace::cli
