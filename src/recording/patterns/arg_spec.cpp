#include "src/recording/patterns/arg_spec.hpp"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <arctrace/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <functional>
#include <iterator>
#include <string_view>
#include <vector>

#include "src/shim_protocol/arg_spec_code.hpp"
#include "src/shim_protocol/options.hpp"

namespace arctrace::recording {
namespace {

struct Format {
  char letter;
  uint8_t kind;  // enum arctrace_value_kind, or ARCTRACE_SHIM_STD_STRING
};
// The letters of uftrace.
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

// 0: it is none.
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
  if (at == std::string::npos) return std::nullopt;  // as the types have them
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

}  // namespace arctrace::recording
