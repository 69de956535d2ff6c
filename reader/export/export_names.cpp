#include "reader/export/export_names.hpp"

#include <absl/strings/str_cat.h>

#include "reader/analysis/tree_groups.hpp"
#include "reader/render/frame_marks.hpp"

namespace arctrace::reader {

const std::string& ExportNames::make(FunctionId function) {
  if (function >= known_.size()) known_.resize(functions_.size());
  known_[function] = {true, safe_name(functions_[function].name)};
  return known_[function].name;
}

std::string ExportNames::frame(FunctionId function, uint16_t flags) {
  return this->function(function) +
         flags_text(static_cast<uint16_t>(flags & kFrameCountedElsewhere));
}

std::string ExportNames::process(ProcessIndex process) const {
  return safe_name(process_label(definitions_, process));
}

std::string ExportNames::thread(ThreadIndex thread) const {
  return safe_name(thread_label(definitions_, thread));
}

std::string ExportNames::thread_field(ThreadIndex thread) const {
  const Thread* facts = definitions_.thread(thread);
  const bool has_process =
      facts != nullptr && definitions_.process(facts->process) != nullptr;
  const bool is_nameless = definitions_.thread_name(thread, INT64_MAX).empty() &&
                           has_process &&
                           process_name(definitions_, facts->process).empty();
  if (is_nameless) return absl::StrCat("process ", definitions_.pid_of(thread));
  return this->thread(thread);
}

}  // namespace arctrace::reader
