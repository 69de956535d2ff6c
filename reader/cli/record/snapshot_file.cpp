#include "reader/cli/record/snapshot_file.hpp"

#include <absl/strings/str_cat.h>

#include <utility>

#include "reader/cli/record/output_file.hpp"
#include "reader/render/output.hpp"
#include "reader/render/session_text.hpp"
#include "src/recorder/snapshot/snapshot.hpp"

namespace arctrace::cli {

absl::Status write_buffer_to_file(const Buffer& buffer,
                                  const SnapshotFileOptions& options) {
  SnapshotPast past;
  if (!options.earlier.empty()) {
    auto earlier =
        read_chunks_untrusted(options.earlier, buffer.header(), options.merges);
    if (!earlier.ok()) return earlier.status();
    past.earlier = *std::move(earlier);
    past.is_merged = options.merges;
  }
  absl::StatusOr<TraceFile> file = create_output(options.output);
  if (!file.ok()) return file.status();
  announce_special(*file);
  past.command_line = options.command_line;
  past.syncs = buffer_syncs(buffer, options.is_live);
  const DrainTotals totals = write_snapshot_file(buffer, *file, past);
  if (file->error() != 0) {
    return absl::ErrnoToStatus(file->error(),
                               absl::StrCat("writing ", options.output.path));
  }
  if (absl::Status published = file->publish(); !published.ok()) return published;
  reader::print_message(absl::StrCat(reader::count_text(totals.records, "record"), ", ",
                                     file->bytes(), " bytes, ", options.output.path));
  return absl::OkStatus();
}

}  // namespace arctrace::cli
