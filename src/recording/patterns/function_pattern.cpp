// Checks globs, makes the names of functions, and finds similar names.
#include "src/recording/patterns/function_pattern.hpp"

#include "reader/replay/functions.hpp"
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

FunctionNames::FunctionNames(const std::string& linker_name)
    : linked(linker_name, 0, kLinkerNameMax),
      base(plain_linker_name(linker_name)),
      whole(reader::demangle_untrusted(base)),
      plain(without_parameters(whole)),
      copy(reader::demangle_untrusted(linked)) {
  const reader::LanguageName other = reader::language_name_untrusted(linked);
  if (other.language == Language::kNone) return;
  decoded = other.shown;
  decoded_plain = other.plain;
  // Names of D have parameters, and C functions may have names like those of Ada.
  if (other.language == Language::kD || other.language == Language::kPerhapsAda) return;
  whole = decoded;
  plain = decoded_plain;
}

FunctionPattern::FunctionPattern(const std::string& text) : text_(text) {
  if (!text.starts_with(shim::kRegexMark)) return;
  expression_.emplace();
  regcomp(&*expression_, text.c_str() + shim::kRegexMark.size(),
          REG_EXTENDED | REG_NOSUB);
}

FunctionPattern::~FunctionPattern() {
  if (expression_) regfree(&*expression_);
}

bool FunctionPattern::matches(const std::string& name) const {
  return is_regex() ? regexec(&*expression_, name.c_str(), 0, nullptr, 0) == 0
                    : glob_matches(text_, name);
}

bool FunctionPattern::matches_any(const FunctionNames& names) const {
  return matches_undemangled(names) || matches(names.whole) || matches(names.plain) ||
         matches(names.copy);
}

bool FunctionPattern::matches_undemangled(const FunctionNames& names) const {
  return matches(names.linked) || matches(names.base) ||
         (!names.decoded.empty() &&
          (matches(names.decoded) || matches(names.decoded_plain)));
}

std::string unmatched_glob(const std::vector<std::string>& globs,
                           const std::vector<std::string>& functions) {
  for (const std::string& glob : globs) {
    std::vector<std::string> names;
    bool is_matched = false;
    for (const std::string& name : functions) {
      is_matched = is_matched || reader::matches_any({glob}, name);
      names.emplace_back(without_parameters(name));
    }
    if (is_matched) continue;
    return "no function of the trace matches \"" + glob + "\"" +
           near_names(plain_part(glob), names);
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
