#include "reader/cli/record/record_joined.hpp"

#include <absl/strings/str_cat.h>
#include <arctrace/format.h>

#include <memory>
#include <set>
#include <string>

#include "reader/cli/record/printed_events.hpp"
#include "reader/cli/record/recording_end.hpp"
#include "reader/cli/record/recording_warnings.hpp"
#include "reader/render/output.hpp"
#include "reader/trace/format_names.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/recording/join_processes.hpp"
#include "src/recording/recording.hpp"

namespace arctrace::cli {
namespace {

using recording::Recording;
using recording::RecordOptions;

// Says at the end what -P has not patched.
void tell_of_patches(const CollectorSummary& summary, const RecordOptions& options) {
  if (options.filter.patch.empty()) return;
  const std::set<uint32_t>& refusals = summary.totals.patches.refusals();
  // Refusals come after what says that some functions are small.
  if (!refusals.empty() && *refusals.rbegin() != ARCTRACE_PATCH_SMALL) {
    reader::print_message(absl::StrCat("nothing of some program was patched for -P: ",
                                       reader::patch_refusal_text(*refusals.rbegin())));
  }
  tell_patches(summary, options);
}

void print_joined_end(const Recording& recording, const std::string& program) {
  const RecordOptions& options = recording.options();
  const CollectorSummary& summary = recording.summary();
  warn_of_unmatched(
      options.filter,
      IpcAtomics::load_relaxed(recording.buffer().view().control().patterns_matched),
      program);
  warn_of_unmatched_events(summary, options.record_filter);
  warn_of_untraced(summary);
  warn_of_identities(summary);
  tell_of_patches(summary, options);
  if (summary.totals.records == 0 &&
      options.library_calls == recording::LibraryCalls::kProgram) {
    reader::print_message(
        "the program itself called no library; --nest-libcall also records the calls "
        "that its libraries make");
  }
  reader::print_message(recording_summary_line(summary, options.output.path));
}

absl::StatusOr<int> record(RecordOptions options) {
  const recording::SignalScope signals;
  PrintedEvents events;
  options.flight.recorder = recording::recorder_facts();
  const absl::StatusOr<std::unique_ptr<Recording>> made =
      Recording::create(options, Recording::Collecting::kIntoFile, events);
  if (!made.ok()) return made.status();
  Recording& recording = **made;
  if (absl::Status joined = recording.join(); !joined.ok()) {
    if (absl::IsAborted(joined)) return 2;  // each of them has been told of
    return joined;
  }
  const std::string program = recording::program_of(recording.joined().front());
  recording.wait(signals);
  recording.finish(signals);
  print_joined_end(recording, program);
  const bool is_whole =
      recording.is_published() && recording.joined().size() == options.pids.size();
  return is_whole && !recording::is_cut_off(recording.summary()) ? 0 : 2;
}

}  // namespace

absl::StatusOr<int> record_joined(const RecordOptions& options) {
  if (!options.command.empty()) {
    return absl::InvalidArgumentError("record: either --pid or a command");
  }
  if (!options.session.empty() || options.wait_for_all) {
    return absl::InvalidArgumentError(
        "record: --session and --wait do not apply with --pid");
  }
  return record(options);
}

}  // namespace arctrace::cli
