// Patterns of functions, which match as in the shim
// (writer_shim/filter/function_patterns.cpp), and the messages for a pattern that is
// wrong or matches none.
#pragma once

#include <regex.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace arctrace::recording {

using Problem = std::pair<size_t, std::string>;  // the offset, and what is wrong

// What is wrong with `pattern` as a glob, in one line. An empty one matches nothing, and
// is refused as well.
std::optional<Problem> glob_problem(const std::string& pattern);

struct FunctionNames {
  // The names of the function that the linker calls `linker_name`.
  explicit FunctionNames(const std::string& linker_name);

  std::string linked;  // the linker's
  std::string base;    // the linker's without the suffixes of copies that compilers make
  std::string whole;   // the base demangled, with parameters
  std::string plain;   // the base demangled, without parameters
  std::string copy;    // the linker's demangled, as reports print it
  // Of languages other than C++, as the shim decodes it: as reports print it (of D
  // without parameters), and without what patterns need not have. Else empty.
  std::string decoded, decoded_plain;
};

// One pattern. REQUIRES: if it is a regular expression, it is valid.
class FunctionPattern {
 public:
  explicit FunctionPattern(const std::string& text);
  ~FunctionPattern();
  FunctionPattern(const FunctionPattern&) = delete;
  FunctionPattern& operator=(const FunctionPattern&) = delete;

  const std::string& text() const { return text_; }
  bool is_regex() const { return expression_.has_value(); }
  bool matches(const std::string& name) const;
  bool matches_any(const FunctionNames& names) const;
  // Whether the shim finds that it matches in a process without a demangler.
  bool matches_undemangled(const FunctionNames& names) const;

 private:
  std::string text_;
  std::optional<regex_t> expression_;
};

// A line about the first of `globs` that matches none of these names of functions, with
// names that look like it; empty if each matches one.
std::string unmatched_glob(const std::vector<std::string>& globs,
                           const std::vector<std::string>& functions);

// The pattern without its wildcards and operators.
std::string plain_part(std::string_view pattern);

}  // namespace arctrace::recording
