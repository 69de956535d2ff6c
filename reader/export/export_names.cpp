#include "reader/export/export_names.hpp"

#include <absl/strings/str_cat.h>

#include <functional>

#include "reader/analysis/tree_groups.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {

std::string export_name(std::string_view name) {
  if (name.size() <= kExportNameMax) return escaped(name);
  // The cut may fall into a character, whose first bytes are escaped then.
  return absl::StrCat(escaped(name.substr(0, kExportNameMax)), "...#",
                      absl::Hex(std::hash<std::string_view>()(name)));
}

const std::string& ExportNames::make(FunctionId function) {
  if (function >= known_.size()) known_.resize(functions_.size());
  known_[function] = {true, export_name(functions_[function].name)};
  return known_[function].name;
}

std::string ExportNames::process(ProcessIndex process) const {
  return export_name(process_label(definitions_, process));
}

std::string ExportNames::thread(ThreadIndex thread) const {
  return export_name(thread_label(definitions_, thread));
}

}  // namespace arctrace::reader
