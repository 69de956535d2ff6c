// A pattern of `record -P`: of functions of the program, or after kLibraryMark, of a
// library:
//
//   PATTERN               functions of the program that match
//   lib:LIBRARY           all functions of libraries that match
//   lib:LIBRARY:PATTERN   functions of such libraries that match
//
// LIBRARY is a glob for the name of the library's file, or for the part of that before
// ".so".
#pragma once

#include <cstddef>
#include <string_view>

#include "src/base/glob.hpp"

namespace arctrace::shim {

inline constexpr std::string_view kLibraryMark = "lib:";

struct PatchPattern {
  std::string_view library;   // empty: it is for the program
  std::string_view function;  // a pattern as for other options
};

namespace detail {

// Not those of std::string_view, which call libc, or throw.
constexpr std::string_view first_of_text(std::string_view text, size_t size) {
  return {text.data(), size};
}
constexpr std::string_view rest_of_text(std::string_view text, size_t from) {
  return {text.data() + from, text.size() - from};
}

constexpr size_t find_text(std::string_view text, std::string_view wanted) {
  for (size_t i = 0; i + wanted.size() <= text.size(); ++i) {
    size_t same = 0;
    while (same < wanted.size() && text[i + same] == wanted[same]) ++same;
    if (same == wanted.size()) return i;
  }
  return text.size();
}

}  // namespace detail

constexpr PatchPattern split_patch_pattern(std::string_view text) {
  if (detail::find_text(text, kLibraryMark) != 0 || text.empty()) return {{}, text};
  text.remove_prefix(kLibraryMark.size());
  const size_t colon = detail::find_text(text, ":");
  if (colon == text.size()) return {text, "*"};
  return {detail::first_of_text(text, colon), detail::rest_of_text(text, colon + 1)};
}

// `file`: the name of a library's file, without its directory; empty: the program.
inline bool is_for_module(const PatchPattern& pattern, std::string_view file) {
  if (pattern.library.empty() || file.empty()) {
    return pattern.library.empty() && file.empty();
  }
  return glob_matches(pattern.library, file) ||
         glob_matches(pattern.library,
                      detail::first_of_text(file, detail::find_text(file, ".so")));
}

}  // namespace arctrace::shim
