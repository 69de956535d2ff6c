#include "src/recording/snapshot_file.hpp"

#include <absl/strings/str_cat.h>

#include <utility>

#include "src/recorder/snapshot/snapshot.hpp"
#include "src/recording/hook_costs.hpp"
#include "src/recording/output_file.hpp"

namespace arctrace::recording {

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

absl::StatusOr<WrittenSnapshot> write_buffer_to_file(const Buffer& buffer,
                                                     const SnapshotFileOptions& options,
                                                     Events& events) {
  absl::StatusOr<TraceFile> file = create_output(options.output);
  if (!file.ok()) return file.status();
  announce_special(*file, events);
  const absl::StatusOr<uint64_t> records = write_buffer(buffer, options, *file);
  if (!records.ok()) return records.status();
  if (absl::Status published = file->publish(); !published.ok()) return published;
  return WrittenSnapshot{*records, file->bytes()};
}

}  // namespace arctrace::recording
