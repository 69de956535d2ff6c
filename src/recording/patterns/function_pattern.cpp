#include "src/recording/patterns/function_pattern.hpp"

#include "reader/symbols/demangle.hpp"
#include "src/base/function_names.hpp"
#include "src/base/glob.hpp"
#include "src/shim_protocol/options.hpp"

namespace arctrace::recording {

FunctionNames::FunctionNames(const std::string& linker_name)
    : linked(linker_name, 0, kLinkerNameMax),
      base(plain_linker_name(linker_name)),
      whole(reader::demangle_untrusted(base)),
      plain(without_parameters(whole)),
      copy(reader::demangle_untrusted(linked)) {}

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
  return matches(names.linked) || matches(names.base) || matches(names.whole) ||
         matches(names.plain) || matches(names.copy);
}

}  // namespace arctrace::recording
