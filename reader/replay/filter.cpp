#include "reader/replay/filter.hpp"

#include <algorithm>

#include "src/base/function_names.hpp"
#include "src/base/glob.hpp"

namespace arctrace::reader {
bool matches_any(const std::vector<std::string>& globs, std::string_view name) {
  const std::string_view original = without_copy_suffix(name);
  const std::string_view plain = without_parameters(original);
  return std::any_of(globs.begin(), globs.end(), [=](const std::string& glob) {
    return glob_matches(glob, name) || glob_matches(glob, original) ||
           glob_matches(glob, plain);
  });
}

FunctionMatcher::Verdict FunctionMatcher::match(FunctionId function) {
  if (function >= known_.size()) known_.resize(functions_.size(), Known::kNothing);
  Known& known = known_[function];
  if (known == Known::kNothing) {
    const std::string& name = functions_[function].name;
    const bool only = matches_any(filter_.only, name);
    const bool except = matches_any(filter_.except, name);
    known = only ? (except ? Known::kBoth : Known::kOnly)
                 : (except ? Known::kExcept : Known::kNeither);
  }
  return {known == Known::kOnly || known == Known::kBoth,
          known == Known::kExcept || known == Known::kBoth};
}

}  // namespace arctrace::reader
