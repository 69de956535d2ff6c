#include "reader/export/export_names.hpp"

#include "reader/analysis/tree_groups.hpp"

namespace arctrace::reader {

const std::string& ExportNames::make(FunctionId function) {
  if (function >= known_.size()) known_.resize(functions_.size());
  known_[function] = {true, safe_name(functions_[function].name)};
  return known_[function].name;
}

std::string ExportNames::process(ProcessIndex process) const {
  return safe_name(process_label(definitions_, process));
}

std::string ExportNames::thread(ThreadIndex thread) const {
  return safe_name(thread_label(definitions_, thread));
}

}  // namespace arctrace::reader
