#include "reader/analysis/name_expression.hpp"

#include <absl/strings/ascii.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "reader/symbols/name_patterns.hpp"
#include "src/base/function_names.hpp"

namespace arctrace::reader {
namespace {

constexpr size_t kTextMax = 256;
constexpr size_t kBytesBetweenCompilations = 64 << 10;

// "a{1000}{1000}" would take gigabytes, and "(a*)\1" exponential time.
bool may_take_long(std::string_view text) {
  if (text.size() > kTextMax || text.find('{') != std::string_view::npos) return true;
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] == '\\' && text[i + 1] >= '0' && text[i + 1] <= '9') return true;
  }
  return false;
}

}  // namespace

// Linker's names of C++, Rust and D begin with "_".
bool NameExpression::begins_otherwise(std::string_view text) {
  constexpr std::string_view kRepeats = "*?";
  return text.size() >= 2 && text[0] == '^' &&
         absl::ascii_isalnum(static_cast<unsigned char>(text[1])) &&
         (text.size() == 2 || kRepeats.find(text[2]) == std::string_view::npos) &&
         text.find('|') == std::string_view::npos;
}

bool NameExpression::may_match_linker_name(std::string_view name) const {
  const std::string_view original = without_copy_suffix(name);
  // Names with parameters are C++'s or D's, those with colons C++'s, Rust's or Fortran's.
  if (original.find('(') != std::string_view::npos ||
      original.find("::") != std::string_view::npos) {
    return may_match_linker_names_;
  }
  // Linker's names of OCaml and Ada begin like those of C.
  return original.find('.') != std::string_view::npos;
}

NameExpression::Compiled NameExpression::compile(const std::string& text) {
  auto made = std::make_unique<regex_t>();
  if (regcomp(made.get(), text.c_str(), REG_EXTENDED | REG_NOSUB) != 0) return nullptr;
  return Compiled(made.release());
}

std::optional<NameExpression> NameExpression::compile_untrusted(std::string_view text) {
  if (may_take_long(text)) return std::nullopt;
  Compiled compiled = compile(std::string(text));
  if (compiled == nullptr) return std::nullopt;
  return NameExpression(std::string(text), std::move(compiled));
}

bool NameExpression::match(const std::string& name) {
  const std::vector<std::string> forms = name_forms(name);
  return std::any_of(forms.begin(), forms.end(), [this](const std::string& form) {
    matched_bytes_ += form.size();
    if (matched_bytes_ > kBytesBetweenCompilations) {
      matched_bytes_ = form.size();
      compiled_ = compile(text_);
    }
    return compiled_ != nullptr &&
           regexec(compiled_.get(), form.c_str(), 0, nullptr, 0) == 0;
  });
}

}  // namespace arctrace::reader
