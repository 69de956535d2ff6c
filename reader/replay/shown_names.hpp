// The names by which reports, screens and exports show functions.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "reader/replay/functions.hpp"

namespace arctrace::reader {

// Shows a function by its short name (src/base/short_names.hpp). If another function of
// the trace has the same one, it is shown with its template arguments, or with its
// parameters, or by its whole name, whichever first tells the two apart. Names that
// programs gave, those of generated code, and the kernel's are shown as they are.
class ShownNames {
 public:
  // `functions` must outlive this object.
  explicit ShownNames(const Functions& functions) : functions_(functions) {}
  ShownNames(const ShownNames&) = delete;
  ShownNames& operator=(const ShownNames&) = delete;

  // From now on all functions are shown by their whole names, or by short ones.
  void set_full(bool is_full) { is_full_ = is_full; }

  // The name, raw bytes. It stays the same, also when more functions are known: of these,
  // the later ones are told apart. REQUIRES: `functions` has it.
  std::string_view operator[](FunctionId function);

 private:
  void add_new();
  void note(std::string_view form, std::string_view whole);
  // Whether no other function's name has this form.
  bool is_own(std::string_view form) const;

  const Functions& functions_;
  bool is_full_ = false;
  std::vector<std::string> shown_;  // by FunctionId; empty: by its whole name
  // The whole names of the functions that have a form; empty: several have it. The keys
  // are views of texts_ and of names in functions_.
  absl::flat_hash_map<std::string_view, std::string_view> whole_by_form_;
  std::deque<std::string> texts_;
};

}  // namespace arctrace::reader
