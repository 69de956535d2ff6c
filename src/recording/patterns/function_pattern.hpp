// Patterns of functions, which match as in the shim
// (writer_shim/filter/function_patterns.cpp).
#pragma once

#include <regex.h>

#include <optional>
#include <string>

namespace arctrace::recording {

struct FunctionNames {
  // The names of the function that the linker calls `linker_name`.
  explicit FunctionNames(const std::string& linker_name);

  std::string linked;  // the linker's
  std::string base;    // the same without the suffixes of copies that compilers make
  std::string whole;   // the base demangled, with parameters
  std::string plain;   // the same without parameters
  std::string copy;    // the linker's demangled, as reports print it
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

 private:
  std::string text_;
  std::optional<regex_t> expression_;
};

}  // namespace arctrace::recording
