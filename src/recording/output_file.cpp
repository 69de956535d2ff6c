// Creates trace files for commands, and writes buffers into them.
#include "src/recording/output_file.hpp"

#include <absl/strings/str_cat.h>

#include <utility>

#include "src/recorder/snapshot/snapshot.hpp"
#include "src/recording/events.hpp"
#include "src/recording/hook_costs.hpp"

namespace arctrace::recording {

absl::StatusOr<recorder::TraceFile> create_output(const OutputFile& output) {
  return recorder::TraceFile::create(output.path, output.is_named
                                                      ? recorder::SpecialFile::kWriteInto
                                                      : recorder::SpecialFile::kRefuse);
}

void announce_special(const recorder::TraceFile& file, Events& events) {
  if (file.special_kind().empty()) return;
  events.tell(absl::StrCat("writing into the ", file.special_kind(), " ", file.path()));
}

bool cuts_files(uint32_t mode, const recorder::FileLimits& limits) {
  return limits.bytes != 0 && mode != ARCTRACE_MODE_OVERWRITE;
}

absl::StatusOr<uint64_t> write_buffer(const recorder::Buffer& buffer,
                                      const SnapshotFileOptions& options,
                                      recorder::TraceFile& file) {
  recorder::SnapshotPast past;
  if (!options.earlier.empty()) {
    auto earlier =
        recorder::read_chunks_untrusted(options.earlier, buffer.header(), options.merges);
    if (!earlier.ok()) return earlier.status();
    past.earlier = *std::move(earlier);
    past.is_merged = options.merges;
  }
  past.recorder.command_line = options.command_line;
  // A merged file has the costs of the recorder that measured them.
  if (!options.merges) past.recorder.hook_costs = hook_costs_of(buffer);
  past.syncs = recorder::buffer_syncs(buffer, options.is_live);
  const recorder::DrainTotals totals = recorder::write_snapshot_file(buffer, file, past);
  if (file.error() != 0) {
    return absl::ErrnoToStatus(file.error(),
                               absl::StrCat("writing ", options.output.path));
  }
  return totals.records;
}

absl::StatusOr<WrittenSnapshot> write_buffer_to_file(const recorder::Buffer& buffer,
                                                     const SnapshotFileOptions& options,
                                                     Events& events) {
  absl::StatusOr<recorder::TraceFile> file = create_output(options.output);
  if (!file.ok()) return file.status();
  announce_special(*file, events);
  const absl::StatusOr<uint64_t> records = write_buffer(buffer, options, *file);
  if (!records.ok()) return records.status();
  if (absl::Status published = file->publish(); !published.ok()) return published;
  return WrittenSnapshot{*records, file->bytes()};
}

}  // namespace arctrace::recording
