#include "src/shim_protocol/glob.hpp"

#include <cstddef>

namespace arctrace::shim {
namespace {

constexpr size_t kNone = SIZE_MAX;

// Where the element of the pattern at `at` ends that stands for one character, and
// whether that may be `c`. kNone: it is not complete.
size_t match_one(std::string_view pattern, size_t at, char c, bool& matches) {
  if (pattern[at] == '?') {
    matches = true;
    return at + 1;
  }
  if (pattern[at] == '\\') {
    if (at + 1 == pattern.size()) return kNone;
    matches = pattern[at + 1] == c;
    return at + 2;
  }
  if (pattern[at] != '[') {
    matches = pattern[at] == c;
    return at + 1;
  }
  size_t i = at + 1;
  const bool is_negated = i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^');
  if (is_negated) ++i;
  bool found = false;
  // As the first character ] stands for itself.
  for (bool is_first = true; i < pattern.size(); is_first = false) {
    if (pattern[i] == ']' && !is_first) {
      matches = found != is_negated;
      return i + 1;
    }
    if (pattern[i] == '\\' && i + 1 < pattern.size()) ++i;
    const auto low = static_cast<unsigned char>(pattern[i++]);
    auto high = low;
    if (i + 1 < pattern.size() && pattern[i] == '-' && pattern[i + 1] != ']') {
      ++i;
      if (pattern[i] == '\\' && i + 1 < pattern.size()) ++i;
      high = static_cast<unsigned char>(pattern[i++]);
    }
    const auto wanted = static_cast<unsigned char>(c);
    found = found || (low <= wanted && wanted <= high);
  }
  return kNone;
}

}  // namespace

bool glob_matches(std::string_view pattern, std::string_view text) {
  size_t at = 0;
  size_t i = 0;
  // Behind the last *, and the text from which on what follows it was tried.
  size_t star = kNone;
  size_t tried = 0;
  while (i < text.size() || at < pattern.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = ++at;
      tried = i;
      continue;
    }
    if (at < pattern.size() && i < text.size()) {
      bool matches = false;
      const size_t next = match_one(pattern, at, text[i], matches);
      if (next == kNone) return false;
      if (matches) {
        at = next;
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

}  // namespace arctrace::shim
