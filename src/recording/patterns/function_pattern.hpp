// Patterns of functions, which match as in the shim
// (writer_shim/filter/function_patterns.cpp), and the messages for a pattern that is
// wrong or matches none.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reader/symbols/name_patterns.hpp"

namespace arctrace::recording {

using Problem = std::pair<size_t, std::string>;  // the offset, and what is wrong

// What is wrong with `pattern` as a glob, in one line. An empty one matches nothing, and
// is refused as well.
std::optional<Problem> glob_problem(const std::string& pattern);

// What is wrong with `pattern`, a glob, or a regular expression after "re:".
std::optional<Problem> pattern_problem(const std::string& pattern);

struct FunctionNames {
  // The names of the function that the linker calls `linker_name`.
  explicit FunctionNames(const std::string& linker_name);

  std::string linked;  // the linker's
  std::string base;    // the linker's without the suffixes of copies that compilers make
  std::string whole;   // the base demangled, with parameters
  std::string plain;   // the base demangled, without parameters
  std::string copy;    // the linker's demangled
  std::string brief;   // the base's short name (src/base/short_names.hpp)
  std::vector<std::string> forms;  // all forms of the base demangled (name_forms())
  // Of languages other than C++, as the shim decodes it: as reports print it (of D
  // without parameters), and without what patterns need not have. Else empty.
  std::string decoded, decoded_plain;
  std::vector<std::string> decoded_forms;
};

class FunctionPattern : public reader::NamePattern {
 public:
  using NamePattern::NamePattern;
  bool matches_any(const FunctionNames& names) const;
  // Whether the shim finds that it matches in a process without a demangler.
  bool matches_undemangled(const FunctionNames& names) const;

 private:
  bool matches_one_of(const std::vector<std::string>& forms) const;
};

// A line about the first of `patterns` that matches none of these demangled names of
// functions, with names that look like it; empty if each matches one.
std::string unmatched_pattern(const std::vector<std::string>& patterns,
                              const std::vector<std::string>& functions);

// The pattern without its wildcards and operators.
std::string plain_part(std::string_view pattern);

}  // namespace arctrace::recording
