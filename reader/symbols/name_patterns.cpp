#include "reader/symbols/name_patterns.hpp"

#include <algorithm>
#include <utility>

#include "src/base/function_names.hpp"
#include "src/base/glob.hpp"
#include "src/base/language_names.hpp"
#include "src/base/short_names.hpp"
#include "src/protocol/live_filter.hpp"

namespace arctrace::reader {
namespace {

std::string form_of(std::string_view name, NameForm form) {
  if (!has_name_forms(name)) return std::string(without_copy_suffix(name));
  std::string text(name.size(), '\0');
  text.resize(write_name_form(name, form, text.data()));
  return text;
}

}  // namespace

std::string short_name(std::string_view name) { return form_of(name, NameForm::kShort); }

std::string name_with_arguments(std::string_view name) {
  return form_of(name, NameForm::kWithArguments);
}

std::string name_with_parameters(std::string_view name) {
  return form_of(name, NameForm::kWithParameters);
}

std::vector<std::string> name_forms(std::string_view name) {
  std::vector<std::string> forms = {std::string(name)};
  const auto add = [&forms](std::string form) {
    if (std::find(forms.begin(), forms.end(), form) == forms.end()) {
      forms.push_back(std::move(form));
    }
  };
  const std::string_view original = without_copy_suffix(name);
  add(std::string(original));
  add(std::string(without_parameters(original)));
  add(std::string(without_ocaml_number(original)));
  if (has_name_forms(name)) {
    for (const NameForm form : kNameForms) add(form_of(name, form));
  }
  return forms;
}

void NamePattern::Free::operator()(regex_t* compiled) const {
  regfree(compiled);
  delete compiled;
}

NamePattern::NamePattern(const std::string& text)
    : text_(text), is_regex_(text.starts_with(kFilterRegex)) {
  if (!is_regex_) return;
  auto compiled = std::make_unique<regex_t>();
  if (regcomp(compiled.get(), text_.c_str() + kFilterRegex.size(),
              REG_EXTENDED | REG_NOSUB) == 0) {
    expression_.reset(compiled.release());
  }
}

bool NamePattern::matches(const std::string& spelling) const {
  if (!is_regex_) return glob_matches(text_, spelling);
  return expression_ != nullptr &&
         regexec(expression_.get(), spelling.c_str(), 0, nullptr, 0) == 0;
}

NamePatterns::NamePatterns(const std::vector<std::string>& texts) {
  patterns_.reserve(texts.size());
  for (const std::string& text : texts) patterns_.emplace_back(text);
}

bool NamePatterns::match(std::string_view name) const {
  if (patterns_.empty()) return false;
  const std::vector<std::string> forms = name_forms(name);
  return std::any_of(
      patterns_.begin(), patterns_.end(), [&forms](const NamePattern& pattern) {
        return std::any_of(forms.begin(), forms.end(), [&](const std::string& form) {
          return pattern.matches(form);
        });
      });
}

}  // namespace arctrace::reader
