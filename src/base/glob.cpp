// Matches globs. The matcher backtracks to the last "*" only, because an earlier one
// could not help where the last one, which also takes any characters, does not. This
// bounds the time for any pattern.
#include "src/base/glob.hpp"

namespace arctrace {
namespace {

// An element of a pattern that stands for one character.
struct Element {
  size_t end;    // offset of the next element
  bool matches;  // it may stand for the character in question
  GlobFault fault = GlobFault::kNone;
};

// The bracket expression at `at`.
Element match_bracket(std::string_view pattern, size_t at, unsigned char c) {
  size_t i = at + 1;
  const bool is_negated = i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^');
  if (is_negated) ++i;
  const auto take = [&] {
    if (pattern[i] == '\\' && i + 1 < pattern.size()) ++i;
    return static_cast<unsigned char>(pattern[i++]);
  };
  bool found = false;
  // "]" as the first character stands for itself.
  for (bool is_first = true; i < pattern.size(); is_first = false) {
    if (pattern[i] == ']' && !is_first) return {i + 1, found != is_negated};
    if (pattern[i] == '[' && i + 1 < pattern.size() &&
        (pattern[i + 1] == ':' || pattern[i + 1] == '.' || pattern[i + 1] == '=')) {
      return {i, false, GlobFault::kClass};
    }
    const unsigned char low = take();
    unsigned char high = low;
    if (i + 1 < pattern.size() && pattern[i] == '-' && pattern[i + 1] != ']') {
      ++i;
      high = take();
    }
    found = found || (low <= c && c <= high);
  }
  return {at, false, GlobFault::kOpenBracket};
}

// The element at `at`, which is not "*".
Element match_one(std::string_view pattern, size_t at, char c) {
  switch (pattern[at]) {
    case '?':
      return {at + 1, true};
    case '\\':
      if (at + 1 == pattern.size()) return {at, false, GlobFault::kLastBackslash};
      return {at + 2, pattern[at + 1] == c};
    case '[':
      return match_bracket(pattern, at, static_cast<unsigned char>(c));
    default:
      return {at + 1, pattern[at] == c};
  }
}

}  // namespace

bool glob_matches(std::string_view pattern, std::string_view text) {
  constexpr size_t kNone = SIZE_MAX;
  size_t at = 0;
  size_t i = 0;
  // The element after the last "*", and the text against which it was last tried.
  size_t star = kNone;
  size_t tried = 0;
  while (i < text.size() || at < pattern.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = ++at;
      tried = i;
      continue;
    }
    if (at < pattern.size() && i < text.size()) {
      const Element element = match_one(pattern, at, text[i]);
      if (element.fault != GlobFault::kNone) return false;
      if (element.matches) {
        at = element.end;
        ++i;
        continue;
      }
    }
    if (star == kNone || tried >= text.size()) return false;
    at = star;
    i = ++tried;
  }
  return true;
}

GlobCheck check_glob(std::string_view pattern) {
  for (size_t at = 0; at < pattern.size();) {
    const Element element = match_one(pattern, at, '\0');
    if (element.fault != GlobFault::kNone) return {element.fault, element.end};
    at = element.end;
  }
  return {GlobFault::kNone, 0};
}

}  // namespace arctrace
