#include "reader/cli/record/output_file.hpp"

#include <absl/strings/str_cat.h>

#include "reader/render/output.hpp"

namespace arctrace::cli {

absl::StatusOr<TraceFile> create_output(const OutputFile& output) {
  absl::StatusOr<TraceFile> file = TraceFile::create(
      output.path, output.is_named ? SpecialFile::kWriteInto : SpecialFile::kRefuse);
  if (file.ok() && !file->special_kind().empty()) {
    reader::print_message(
        absl::StrCat("writing into the ", file->special_kind(), " ", output.path));
  }
  return file;
}

}  // namespace arctrace::cli
