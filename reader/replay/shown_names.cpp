#include "reader/replay/shown_names.hpp"

#include <array>
#include <utility>

#include "reader/symbols/name_patterns.hpp"

namespace arctrace::reader {
namespace {

// Whether the function has a name that a compiler gave to it.
bool is_compiled(const Function& function) {
  return !function.module.empty() && function.module != kKernelModule &&
         function.module != kGeneratedModule;
}

using Forms = std::array<std::string, 3>;  // in the order in which they are tried

Forms forms_of(std::string_view name) {
  return {short_name(name), name_with_arguments(name), name_with_parameters(name)};
}

}  // namespace

std::string_view ShownNames::operator[](FunctionId function) {
  const std::string_view whole = functions_[function].name;
  if (is_full_) return whole;
  if (function >= shown_.size()) add_new();
  return shown_[function].empty() ? whole : shown_[function];
}

void ShownNames::add_new() {
  const size_t begin = shown_.size();
  std::vector<Forms> forms(functions_.size() - begin);
  for (size_t id = begin; id < functions_.size(); ++id) {
    const Function& function = functions_[static_cast<FunctionId>(id)];
    note(function.name, function.name);
    if (!is_compiled(function)) continue;
    forms[id - begin] = forms_of(function.name);
    for (const std::string& form : forms[id - begin]) note(form, function.name);
  }
  shown_.resize(functions_.size());
  for (size_t id = begin; id < functions_.size(); ++id) {
    for (std::string& form : forms[id - begin]) {
      if (form.empty() || !is_own(form)) continue;
      shown_[id] = std::move(form);
      break;
    }
  }
}

void ShownNames::note(std::string_view form, std::string_view whole) {
  const auto found = whole_by_form_.find(form);
  if (found == whole_by_form_.end()) {
    const bool is_whole = form.data() == whole.data();
    whole_by_form_.emplace(is_whole ? form : texts_.emplace_back(form), whole);
  } else if (found->second != whole) {
    found->second = {};
  }
}

bool ShownNames::is_own(std::string_view form) const {
  const auto found = whole_by_form_.find(form);
  return found != whole_by_form_.end() && !found->second.empty();
}

}  // namespace arctrace::reader
