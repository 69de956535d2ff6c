// Checks patterns, makes the names of functions, and finds similar names.
#include "src/recording/patterns/function_pattern.hpp"

#include <regex.h>

#include <algorithm>
#include <array>

#include "reader/symbols/demangle.hpp"
#include "src/base/function_names.hpp"
#include "src/base/glob.hpp"
#include "src/base/language_names.hpp"
#include "src/base/near_names.hpp"
#include "src/shim_protocol/options.hpp"

namespace arctrace::recording {

std::optional<Problem> glob_problem(const std::string& pattern) {
  if (pattern.empty()) return Problem{0, "an empty pattern"};
  const GlobCheck check = check_glob(pattern);
  switch (check.fault) {
    case GlobFault::kNone:
      return std::nullopt;
    case GlobFault::kOpenBracket:
      return Problem{check.offset,
                     "no ] to this [; a backslash before it makes it plain"};
    case GlobFault::kClass:
      return Problem{check.offset, "no classes as in [[:alpha:]]; [a-z] is a range"};
    default:
      return Problem{check.offset, "nothing after the backslash"};
  }
}

namespace {

std::string regex_error(const std::string& expression) {
  regex_t compiled;
  const int error = regcomp(&compiled, expression.c_str(), REG_EXTENDED | REG_NOSUB);
  if (error == 0) {
    regfree(&compiled);
    return {};
  }
  std::array<char, 128> text{};
  regerror(error, &compiled, text.data(), text.size());
  return text.data();
}

std::optional<Problem> regex_problem(const std::string& pattern) {
  const std::string expression = pattern.substr(shim::kRegexMark.size());
  if (expression.empty()) return Problem{pattern.size(), "nothing after re:"};
  const std::string error = regex_error(expression);
  if (error.empty()) return std::nullopt;
  // regcomp does not return the error's offset. It is taken to be the end of the longest
  // prefix that is correct by itself.
  size_t offset = expression.size() - 1;
  while (offset > 0 && !regex_error(expression.substr(0, offset)).empty()) --offset;
  return Problem{shim::kRegexMark.size() + offset, error};
}

}  // namespace

std::optional<Problem> pattern_problem(const std::string& pattern) {
  return pattern.starts_with(shim::kRegexMark) ? regex_problem(pattern)
                                               : glob_problem(pattern);
}

FunctionNames::FunctionNames(const std::string& linker_name)
    : linked(linker_name, 0, kLinkerNameMax),
      base(plain_linker_name(linker_name)),
      whole(reader::demangle_untrusted(base)),
      plain(without_parameters(whole)),
      copy(reader::demangle_untrusted(linked)),
      brief(reader::short_name(whole)),
      forms(reader::name_forms(whole)) {
  const reader::LanguageName other = reader::language_name_untrusted(linked);
  if (other.language == Language::kNone) return;
  decoded = other.shown;
  decoded_plain = other.plain;
  decoded_forms = reader::name_forms(decoded);
  // Names of D have parameters, and C functions may have names like those of Ada.
  if (other.language == Language::kD || other.language == Language::kPerhapsAda) return;
  whole = decoded;
  plain = decoded_plain;
  brief = reader::short_name(decoded_plain);
  forms = decoded_forms;
}

bool FunctionPattern::matches_one_of(const std::vector<std::string>& forms) const {
  return std::any_of(forms.begin(), forms.end(),
                     [this](const std::string& form) { return matches(form); });
}

bool FunctionPattern::matches_any(const FunctionNames& names) const {
  return matches_undemangled(names) || matches(names.copy) || matches_one_of(names.forms);
}

bool FunctionPattern::matches_undemangled(const FunctionNames& names) const {
  return matches(names.linked) || matches(names.base) ||
         (!names.decoded.empty() && matches(names.decoded_plain)) ||
         matches_one_of(names.decoded_forms);
}

std::string unmatched_pattern(const std::vector<std::string>& patterns,
                              const std::vector<std::string>& functions) {
  for (const std::string& pattern : patterns) {
    const reader::NamePatterns compiled({pattern});
    if (std::any_of(functions.begin(), functions.end(),
                    [&](const auto& name) { return compiled.match(name); })) {
      continue;
    }
    std::vector<std::string> names;
    names.reserve(functions.size());
    for (const std::string& name : functions) names.push_back(reader::short_name(name));
    return "no function of the trace matches \"" + pattern + "\"" +
           near_names(plain_part(pattern), names);
  }
  return {};
}

std::string plain_part(std::string_view pattern) {
  if (pattern.starts_with(shim::kRegexMark)) {
    pattern.remove_prefix(shim::kRegexMark.size());
  }
  std::string plain;
  for (const char c : pattern) {
    if (std::string_view("*?[]^$.\\+").find(c) == std::string_view::npos) plain += c;
  }
  return plain;
}

}  // namespace arctrace::recording
