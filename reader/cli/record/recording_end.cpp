#include "reader/cli/record/recording_end.hpp"

#include <absl/strings/str_cat.h>

#include <cstdint>
#include <cstring>
#include <numeric>
#include <set>
#include <vector>

#include "reader/cli/record/printed_events.hpp"
#include "reader/cli/record/recording_warnings.hpp"
#include "reader/render/losses.hpp"
#include "reader/render/output.hpp"
#include "reader/render/session_text.hpp"
#include "reader/symbols/elf_file.hpp"
#include "reader/trace/format_names.hpp"
#include "reader/trace/text_escape.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/recording/patching/patch_choice.hpp"
#include "src/recording/patching/room_check.hpp"
#include "src/recording/patterns/command_path.hpp"

namespace arctrace::cli {
namespace {

uint64_t lost_records(const CollectorSummary& summary) {
  return std::accumulate(summary.lost.begin(), summary.lost.end(), uint64_t{0});
}

// Whether the command's functions have room for hooks.
bool has_rooms(const std::string& command) {
  const auto file = reader::ElfFile::open_untrusted(recording::find_program(command));
  return file.ok() && file->has_section("__patchable_function_entries");
}

// What to do where no program's own function was recorded; empty where it is not missed:
// where the options exclude functions, or ask for other records and got some. Those that
// were lost may have been of such functions.
std::string own_functions_hint(const CollectorSummary& summary,
                               const recording::RecordOptions& options) {
  if (summary.totals.has_own || options.filter.excludes_functions() ||
      !options.record_filter.empty() || (options.off & ARCTRACE_GATE_FUNCTIONS) != 0 ||
      lost_records(summary) != 0) {
    return "";
  }
  std::string what = "only library calls were recorded";
  if (summary.totals.records == 0) what = "no function was recorded";
  if (options.library_calls == recording::LibraryCalls::kNone) {
    // With -P, what was recorded is that the program waited for it.
    const bool patches = !options.filter.patch.empty();
    if ((summary.totals.records != 0 && !patches) ||
        options.kernel.use != recording::KernelRecording::kNo) {
      return "";
    }
    what = "no function was recorded (--no-libcall)";
  }
  if (!options.filter.patch.empty()) {
    const std::set<uint32_t>& refusals = summary.totals.patches.refusals();
    // A refusal says more than that some are small, and comes after it in the set.
    if (!refusals.empty() && *refusals.rbegin() == ARCTRACE_PATCH_SMALL) {
      return absl::StrCat(what, "; the functions that could be patched for -P have ",
                          recording::kSmallFunctionsText);
    }
    if (!refusals.empty()) {
      return absl::StrCat(what, "; nothing was patched for -P: ",
                          reader::patch_refusal_text(*refusals.rbegin()));
    }
    return absl::StrCat(what,
                        "; no function could be patched for -P: arctrace functions ",
                        reader::escaped(options.command.front()),
                        " may say why, or the manual of functions that can be patched");
  }
  if (has_rooms(options.command.front())) {
    return absl::StrCat(what, "; functions of ", reader::escaped(options.command.front()),
                        " have room for hooks (-fpatchable-function-entry), but less "
                        "than a hook needs, or neither unwind tables nor symbols that "
                        "say where they begin");
  }
  return absl::StrCat(what,
                      "; to record a program's own functions, "
#if defined(__x86_64__)
                      "record it with -P ., or build it with -finstrument-functions, "
                      "-fpatchable-function-entry=5, -pg or "
                      "-pg -mfentry"
#else
                      "build it with -finstrument-functions or "
                      "-fpatchable-function-entry=1"
#endif
  );
}

// Where only some objects of the command lack what says where their functions begin, the
// others are recorded.
void tell_unused_rooms(const CollectorSummary& summary,
                       const recording::RecordOptions& options) {
  if (!summary.totals.has_own) return;
  const std::string path = recording::find_program(options.command.front());
  const recording::Rooms rooms = recording::count_rooms_untrusted(path);
  if (rooms.without_begin == 0) return;
  reader::print_message(absl::StrCat(
      rooms.without_begin, " of the ", rooms.all, " functions of ",
      reader::escaped(options.command.front()),
      " that have room for hooks (-fpatchable-function-entry) are not recorded: neither "
      "unwind tables nor symbols say where they begin; build all of it with "
      "-fasynchronous-unwind-tables"));
}

void tell_switched_off(const CollectorSummary& summary) {
  const size_t count = summary.totals.patches.switched_off().size();
  if (count == 0) return;
  reader::print_message(absl::StrCat(
      reader::count_text(count, "function"), count == 1 ? " was" : " were",
      " switched off, because ", count == 1 ? "its" : "their",
      " calls filled the buffer: arctrace info -v names ", count == 1 ? "it" : "them",
      "; those that -P names without wildcards stay on"));
}

void tell_library_refusals(const CollectorSummary& summary) {
  const std::set<uint32_t>& refusals = summary.totals.patches.library_refusals();
  if (refusals.empty()) return;
  reader::print_message(absl::StrCat("nothing of some library was patched for -P: ",
                                     reader::patch_refusal_text(*refusals.begin()),
                                     "; arctrace info says of which"));
}

// Where other functions of the program were recorded: without them the hint about own
// functions says the same. With -Z it is what was asked for.
void tell_small(const CollectorSummary& summary,
                const recording::RecordOptions& options) {
  if (!summary.totals.has_own || options.filter.size.has_value() ||
      !summary.totals.patches.refusals().contains(ARCTRACE_PATCH_SMALL)) {
    return;
  }
  reader::print_message(absl::StrCat("functions of fewer than ",
                                     recording::kPatchedSizeMin,
                                     " bytes without calls and loops were not patched: "
                                     "-Z 1 takes them, too"));
}

void tell_snapshots(const CollectorSummary& summary,
                    const recording::RecordOptions& options) {
  if (options.filter.snapshot_when.empty()) return;
  std::string line = absl::StrCat(reader::count_text(summary.asked_snapshots, "snapshot"),
                                  " for --snapshot-when");
  if (summary.refused_snapshots != 0) {
    absl::StrAppend(&line, "; ", reader::count_text(summary.refused_snapshots, "call"),
                    " that would have had one came less than a second after another");
  }
  reader::print_message(line);
}

}  // namespace

void tell_patches(const CollectorSummary& summary,
                  const recording::RecordOptions& options) {
  tell_switched_off(summary);
  tell_library_refusals(summary);
  tell_small(summary, options);
}

void print_end(const CollectorSummary& summary, const recording::RecordOptions& options,
               const BufferView& buffer, bool has_warned) {
  has_warned = warn_of_missing_room(buffer) || has_warned;
  if (summary.processes == 0) {
    if (!has_warned) reader::print_warning("no process joined the session");
  } else {
    warn_of_unmatched(options.filter,
                      IpcAtomics::load_relaxed(buffer.control().patterns_matched),
                      options.command.front());
    warn_of_unmatched_events(summary, options.record_filter);
  }
  warn_of_untraced(summary);
  if (summary.living != 0 && !options.wait_for_all && options.duration_ns == 0) {
    reader::print_warning(absl::StrCat(
        reader::count_text(summary.living, "process", "processes"),
        summary.living == 1 ? " of the command still runs, and is recorded no longer"
                            : " of the command still run, and are recorded no longer",
        ": record --wait waits for that"));
  }
  warn_of_identities(summary);
  if (summary.processes != 0 && !has_warned) {
    if (const std::string hint = own_functions_hint(summary, options); !hint.empty()) {
      reader::print_message(hint);
    }
  }
  tell_unused_rooms(summary, options);
  tell_patches(summary, options);
  tell_snapshots(summary, options);
  reader::print_message(recording_summary_line(summary, options.output.path));
}

std::string recording_summary_line(const CollectorSummary& summary,
                                   const std::string& file) {
  const uint64_t removed = summary.removed.records + summary.removed.kernel;
  const uint64_t lost = lost_records(summary) + removed;
  std::string line = absl::StrCat(
      reader::count_text(summary.totals.records - summary.removed.records, "record"),
      ", ", reader::grouped_text(lost), " lost");
  if (lost != 0) {
    std::vector<uint64_t> causes = summary.lost;
    causes.push_back(removed);
    absl::StrAppend(&line, " (", reader::losses_text(causes));
    if (summary.removed.files != 0) {
      absl::StrAppend(&line, " with ", reader::count_text(summary.removed.files, "file"));
    }
    line += ')';
  }
  if (summary.overwritten != 0) {
    absl::StrAppend(&line, ", ", reader::grouped_text(summary.overwritten),
                    " overwritten");
  }
  if (summary.filtered_out != 0) {
    absl::StrAppend(&line, ", ", reader::grouped_text(summary.filtered_out),
                    " filtered out");
  }
  absl::StrAppend(&line, ", ",
                  reader::count_text(summary.processes, "process", "processes"), ", ",
                  reader::count_text(summary.threads, "thread"), ", ",
                  reader::bytes_text(summary.file_bytes), ", ", file);
  if (summary.earlier_files != 0) {
    absl::StrAppend(&line, " and ", reader::count_text(summary.earlier_files, "file"),
                    " before it");
  }
  if (const uint64_t begun = summary.totals.torn + summary.totals.unfinished; begun > 0) {
    absl::StrAppend(&line, " (", reader::count_text(begun, "record"),
                    begun == 1 ? " was" : " were", " in progress)");
  }
  if (summary.file_error != 0) {
    absl::StrAppend(&line, " (cut off: ", std::strerror(summary.file_error), ")");
  }
  return line;
}

absl::Status write_and_tell(const Buffer& buffer,
                            const recording::SnapshotFileOptions& options) {
  PrintedEvents events;
  const auto written = recording::write_buffer_to_file(buffer, options, events);
  if (!written.ok()) return written.status();
  reader::print_message(absl::StrCat(reader::count_text(written->records, "record"), ", ",
                                     reader::bytes_text(written->bytes), ", ",
                                     options.output.path));
  return absl::OkStatus();
}

}  // namespace arctrace::cli
