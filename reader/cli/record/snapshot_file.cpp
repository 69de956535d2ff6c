#include "reader/cli/record/snapshot_file.hpp"

#include <absl/strings/str_cat.h>

#include <utility>

#include "reader/cli/record/hook_costs.hpp"
#include "reader/cli/record/output_file.hpp"
#include "reader/render/output.hpp"
#include "reader/render/session_text.hpp"
#include "src/recorder/snapshot/snapshot.hpp"

namespace arctrace::cli {

absl::StatusOr<uint64_t> write_buffer(const Buffer& buffer,
                                      const SnapshotFileOptions& options,
                                      TraceFile& file) {
  SnapshotPast past;
  if (!options.earlier.empty()) {
    auto earlier =
        read_chunks_untrusted(options.earlier, buffer.header(), options.merges);
    if (!earlier.ok()) return earlier.status();
    past.earlier = *std::move(earlier);
    past.is_merged = options.merges;
  }
  past.recorder.command_line = options.command_line;
  // What is merged has those of the recorder that measured them.
  if (!options.merges) past.recorder.hook_costs = hook_costs_of(buffer);
  past.syncs = buffer_syncs(buffer, options.is_live);
  const DrainTotals totals = write_snapshot_file(buffer, file, past);
  if (file.error() != 0) {
    return absl::ErrnoToStatus(file.error(),
                               absl::StrCat("writing ", options.output.path));
  }
  return totals.records;
}

absl::Status write_buffer_to_file(const Buffer& buffer,
                                  const SnapshotFileOptions& options) {
  absl::StatusOr<TraceFile> file = create_output(options.output);
  if (!file.ok()) return file.status();
  announce_special(*file);
  const absl::StatusOr<uint64_t> records = write_buffer(buffer, options, *file);
  if (!records.ok()) return records.status();
  if (absl::Status published = file->publish(); !published.ok()) return published;
  reader::print_message(absl::StrCat(reader::count_text(*records, "record"), ", ",
                                     reader::bytes_text(file->bytes()), ", ",
                                     options.output.path));
  return absl::OkStatus();
}

}  // namespace arctrace::cli
