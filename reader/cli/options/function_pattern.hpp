// The user's patterns for functions, as the shim matches them
// (writer_shim/filter/function_patterns.cpp).
#pragma once

#include <regex.h>

#include <optional>
#include <string>

namespace arctrace::cli {

struct FunctionNames {
  // Of the function with this linker's name.
  explicit FunctionNames(const std::string& linker_name);

  std::string linked;  // its linker's name, without what compilers add to those of copies
  std::string whole;   // as people write it, with parameters
  std::string plain;   // and without
};

// One pattern. REQUIRES: its regular expression, if it is one, is right.
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

}  // namespace arctrace::cli
