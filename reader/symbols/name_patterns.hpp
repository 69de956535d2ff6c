// Patterns of functions, as users give them to record, ctl, report, graph, dump, diff and
// export: a glob (src/base/glob.hpp), or "re:" and an extended regular expression. A
// pattern matches a function by any of the forms of its name.
#pragma once

#include <regex.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace arctrace::reader {

// The forms of a demangled name that patterns are matched against, without duplicates:
// the name, without the suffix of a copy, without parameters, without OCaml's number, and
// the short forms (src/base/short_names.hpp). The shim makes the same forms.
std::vector<std::string> name_forms(std::string_view name);

// One of the short forms.
std::string short_name(std::string_view name);
std::string name_with_arguments(std::string_view name);
std::string name_with_parameters(std::string_view name);

class NamePattern {
 public:
  // An expression that is not valid matches nothing.
  explicit NamePattern(const std::string& text);

  const std::string& text() const { return text_; }
  bool is_regex() const { return is_regex_; }
  // Whether it matches this spelling: a glob the whole, an expression any part.
  bool matches(const std::string& spelling) const;

 private:
  struct Free {
    void operator()(regex_t* compiled) const;
  };

  std::string text_;
  bool is_regex_;
  std::unique_ptr<regex_t, Free> expression_;
};

class NamePatterns {
 public:
  explicit NamePatterns(const std::vector<std::string>& texts);

  // Whether a function with this demangled name matches one of the patterns.
  bool match(std::string_view name) const;

 private:
  std::vector<NamePattern> patterns_;
};

}  // namespace arctrace::reader
