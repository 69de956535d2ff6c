#include "reader/cli/record/output_file.hpp"

#include <absl/strings/str_cat.h>

#include "reader/render/output.hpp"

namespace arctrace::cli {

absl::StatusOr<TraceFile> create_output(const OutputFile& output) {
  return TraceFile::create(
      output.path, output.is_named ? SpecialFile::kWriteInto : SpecialFile::kRefuse);
}

void announce_special(const TraceFile& file) {
  if (file.special_kind().empty()) return;
  reader::print_message(
      absl::StrCat("writing into the ", file.special_kind(), " ", file.path()));
}

}  // namespace arctrace::cli
