#include "reader/replay/filter.hpp"

#include <algorithm>

namespace arctrace::reader {
namespace {

bool any_match(const std::vector<std::string>& patterns, std::string_view name) {
  const std::string_view plain = without_parameters(name);
  return std::any_of(patterns.begin(), patterns.end(), [=](const std::string& p) {
    return glob_match(p, name) || glob_match(p, plain);
  });
}

}  // namespace

std::string_view without_parameters(std::string_view name) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)";
  constexpr std::string_view kOperator = "operator";
  size_t nesting = 0;  // of template arguments
  for (size_t i = 0; i < name.size(); ++i) {
    if (name.substr(i).starts_with(kAnonymous)) {
      i += kAnonymous.size() - 1;
    } else if (name.substr(i).starts_with(kOperator)) {
      // The operator's own name may have brackets and signs.
      i += kOperator.size();
      if (name.substr(i).starts_with("()")) ++i;
      while (i + 1 < name.size() && (name[i + 1] == '<' || name[i + 1] == '>') &&
             nesting == 0 && (name[i] == '<' || name[i] == '>')) {
        ++i;
      }
    } else if (name[i] == '<') {
      ++nesting;
    } else if (name[i] == '>' && nesting > 0) {
      --nesting;
    } else if (name[i] == '(' && nesting == 0 && i > 0) {
      return name.substr(0, i);
    }
  }
  return name;
}

bool glob_match(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0;
  // Where to continue if the last '*' has to match one more character.
  size_t star = std::string_view::npos, star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

FunctionMatcher::Verdict FunctionMatcher::match(FunctionId function) {
  if (function >= known_.size()) known_.resize(functions_.size(), Known::kNothing);
  Known& known = known_[function];
  if (known == Known::kNothing) {
    const std::string& name = functions_[function].name;
    const bool only = any_match(filter_.only, name);
    const bool except = any_match(filter_.except, name);
    known = only ? (except ? Known::kBoth : Known::kOnly)
                 : (except ? Known::kExcept : Known::kNeither);
  }
  return {known == Known::kOnly || known == Known::kBoth,
          known == Known::kExcept || known == Known::kBoth};
}

}  // namespace arctrace::reader
