#include "src/recording/output_file.hpp"

#include <absl/strings/str_cat.h>

namespace arctrace::recording {

absl::StatusOr<TraceFile> create_output(const OutputFile& output) {
  return TraceFile::create(
      output.path, output.is_named ? SpecialFile::kWriteInto : SpecialFile::kRefuse);
}

void announce_special(const TraceFile& file, Events& events) {
  if (file.special_kind().empty()) return;
  events.tell(absl::StrCat("writing into the ", file.special_kind(), " ", file.path()));
}

bool cuts_files(uint32_t mode, const FileLimits& limits) {
  return limits.bytes != 0 && mode != ARCTRACE_MODE_OVERWRITE;
}

}  // namespace arctrace::recording
