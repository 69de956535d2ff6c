// Regular expressions of filters that stand in a trace (-F re:EXPRESSION), which the shim
// has applied to names of functions.
#pragma once

#include <regex.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace arctrace::reader {

class NameExpression {
 public:
  // nullopt: it is not valid, or of a kind that may take very long to match (with counts
  // or references to groups), or longer than 256 bytes. `text` is untrusted.
  static std::optional<NameExpression> compile_untrusted(std::string_view text);

  // Whether a function with this demangled name matches, in one of the forms in which the
  // shim matches names (name_forms()). Takes time linear in the name.
  bool match(const std::string& name);
  // Whether the shim may have matched it by its linker's name, which a trace does not
  // have: it is no C function, and the expression is not one that only a name of C begins
  // with.
  bool may_match_linker_name(std::string_view name) const;

 private:
  struct Free {
    void operator()(regex_t* compiled) const {
      regfree(compiled);
      delete compiled;
    }
  };
  using Compiled = std::unique_ptr<regex_t, Free>;

  NameExpression(std::string text, Compiled compiled)
      : text_(std::move(text)),
        compiled_(std::move(compiled)),
        may_match_linker_names_(!begins_otherwise(text_)) {}
  static bool begins_otherwise(std::string_view text);
  static Compiled compile(const std::string& text);

  std::string text_;
  Compiled compiled_;
  bool may_match_linker_names_;
  // The memory that libc uses for an expression grows with the bytes that were matched.
  size_t matched_bytes_ = 0;
};

}  // namespace arctrace::reader
