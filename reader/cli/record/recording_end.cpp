// Prints what is to be said at the end of a recording: warnings by its summary and its
// buffer, and the line that ends it.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reader/cli/record/printed_events.hpp"
#include "reader/cli/record/record_session.hpp"
#include "reader/render/output.hpp"
#include "reader/render/session_text.hpp"
#include "reader/render/shell_text.hpp"
#include "reader/report/record_again.hpp"
#include "reader/symbols/elf_file.hpp"
#include "reader/trace/format_names.hpp"
#include "reader/trace/text_escape.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/recording/patching/call_slots.hpp"
#include "src/recording/patching/patch_check.hpp"
#include "src/recording/patching/patch_choice.hpp"
#include "src/recording/patterns/program_functions.hpp"
#include "src/recording/patterns/unmatched.hpp"

namespace arctrace::cli {

void warn_untraced(const std::string& program, uint32_t why) {
  reader::print_warning(
      absl::StrCat("can't trace ", program, ": it is ", reader::untraced_text(why)));
}

void warn_of_untraced(const recorder::CollectorSummary& summary) {
  constexpr size_t kShownMax = 5;
  const std::set<recorder::UntracedProgram>& programs =
      summary.totals.untraced.programs();
  size_t shown = 0;
  for (const recorder::UntracedProgram& program : programs) {
    if (shown++ == kShownMax) break;
    warn_untraced(reader::escaped(program.path), program.why);
  }
  if (programs.size() > kShownMax) {
    reader::print_warning(absl::StrCat(
        "can't trace ", reader::count_text(programs.size() - kShownMax, "more program"),
        ": arctrace dump shows them as UNTRACED"));
  }
}

void warn_of_unmatched_events(const recorder::CollectorSummary& summary,
                              const recording::RecordFilterOptions& filter) {
  const recorder::DefinedEvents& defined = summary.totals.events;
  std::vector<std::string> lines;
  if (defined.has_all_events()) {
    lines = recording::unmatched_events(filter, defined.levels(), defined.fields());
  }
  if (defined.has_all_names()) {
    for (std::string& line : recording::unmatched_instants(filter, defined.names())) {
      lines.push_back(std::move(line));
    }
  }
  for (const std::string& line : lines) reader::print_warning(line);
}

namespace {

// Why no function of some program was patched; 0: that was not so. In the set, refusals
// come after ARCTRACE_PATCH_SMALL.
uint32_t program_refusal(const recorder::PatchNotes& patches) {
  const std::set<uint32_t>& refusals = patches.refusals();
  const bool is_refused = !refusals.empty() && *refusals.rbegin() != ARCTRACE_PATCH_SMALL;
  return is_refused ? *refusals.rbegin() : 0;
}

}  // namespace

void warn_of_identities(const recorder::CollectorSummary& summary) {
  const std::string text = reader::identities_text(summary.processes, summary.threads);
  if (!text.empty()) reader::print_warning(text);
}

void warn_of_unmatched(const recording::CallFilterOptions& filter, uint64_t matched,
                       const std::string& command,
                       const recorder::CollectorSummary* summary) {
  recording::RefusedPatches refused;
  if (summary != nullptr) {
    const recorder::PatchNotes& patches = summary->totals.patches;
    refused = {program_refusal(patches) != 0, !patches.library_refusals().empty()};
  }
  for (const std::string& line :
       recording::unmatched_patterns(filter, matched, command, refused)) {
    reader::print_warning(line);
  }
}

bool warn_of_missing_memory(const BufferView& buffer) {
  const uint32_t count = IpcAtomics::load_relaxed(buffer.control().without_room);
  if (count == 0) return false;
  reader::print_warning(
      absl::StrCat(reader::count_text(count, "program"), count == 1 ? " is" : " are",
                   " not recorded, without room in memory for the buffer of ",
                   reader::bytes_text(buffer.geometry().total_size),
                   " (ulimit -v): a smaller one may fit, such as -b 4M"));
  return true;
}

namespace {

uint64_t lost_records(const recorder::CollectorSummary& summary) {
  return std::accumulate(summary.lost.begin(), summary.lost.end(), uint64_t{0});
}

// Whether the command's functions have NOP areas for hooks.
bool has_patchable_entries(const std::string& command) {
  const auto file = reader::ElfFile::open_untrusted(recording::find_program(command));
  return file.ok() && file->has_section("__patchable_function_entries");
}

// Returns the library that has most functions of a program, by its name; or nothing.
std::string engine_of_program(const std::string& path) {
  const std::vector<std::string> paths = recording::libraries_of(path);
  const std::vector<std::string_view> libraries(paths.begin(), paths.end());
  return reader::engine_of(path, libraries);
}

// Returns a hint if no function of the program itself was recorded. It is empty if the
// options exclude functions, or ask for other records and got some, or if records were
// lost, which may have been of such functions.
std::string own_functions_hint(const recorder::CollectorSummary& summary,
                               const recording::RecordOptions& options) {
  if (summary.totals.has_own || options.filter.excludes_functions() ||
      !options.record_filter.empty() || (options.off & ARCTRACE_GATE_FUNCTIONS) != 0 ||
      lost_records(summary) != 0) {
    return "";
  }
  std::string what = "only library calls were recorded";
  if (summary.totals.records == 0) what = "no function was recorded";
  if (options.library_calls == recording::LibraryCalls::kNone) {
    // With -P, the records are only of the program's waiting for the patches.
    const bool patches = !options.filter.patch.empty();
    if ((summary.totals.records != 0 && !patches) ||
        options.kernel.use != recording::KernelRecording::kNo) {
      return "";
    }
    what = "no function was recorded (--no-libcall)";
  }
  if (!options.filter.patch.empty()) {
    const recorder::PatchNotes& patches = summary.totals.patches;
    if (const uint32_t refusal = program_refusal(patches); refusal != 0) {
      return absl::StrCat(
          what, "; nothing was patched for -P: ", reader::patch_refusal_text(refusal));
    }
    if (!patches.refusals().empty()) {  // it is only ARCTRACE_PATCH_SMALL
      return absl::StrCat(what, "; the functions that could be patched for -P have ",
                          recording::kSmallFunctionsText);
    }
    // Where nothing of libraries was patched either, that has a line of its own.
    if (!patches.library_refusals().empty()) return "";
    return absl::StrCat(what,
                        "; no function could be patched for -P: arctrace functions ",
                        reader::escaped(options.command.front()),
                        " may say why, or the manual of functions that can be patched");
  }
  if (has_patchable_entries(options.command.front())) {
    return absl::StrCat(what, "; functions of ", reader::escaped(options.command.front()),
                        " have room for hooks (-fpatchable-function-entry), but less "
                        "than a hook needs, or neither unwind tables nor symbols that "
                        "say where they begin; or their code may not change, as under "
                        "a seccomp filter that refuses executable memory");
  }
  if (reader::is_python(options.command.front())) {
    return absl::StrCat(what,
                        "; to record a program's own functions, if they are Python's, "
                        "record python3 -m arctrace_python PROGRAM.py");
  }
#if defined(__x86_64__)
  if (const std::string engine =
          engine_of_program(recording::find_program(options.command.front()));
      !engine.empty()) {
    return absl::StrCat(
        what, "; to record a program's own functions, which are mostly in ",
        reader::escaped(engine), ", record it with -P ", reader::engine_pattern(engine));
  }
#endif
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

// Prints how many functions with NOP areas are not recorded, because some objects of the
// command lack what says where their functions begin. The others are recorded.
void tell_unused_entries(const recorder::CollectorSummary& summary,
                         const recording::RecordOptions& options) {
  if (!summary.totals.has_own) return;
  const std::string path = recording::find_program(options.command.front());
  const recording::PatchableEntries entries =
      recording::count_patchable_entries_untrusted(path);
  if (entries.without_begin == 0) return;
  reader::print_message(absl::StrCat(
      entries.without_begin, " of the ", entries.all, " functions of ",
      reader::escaped(options.command.front()),
      " that have room for hooks (-fpatchable-function-entry) are not recorded: neither "
      "unwind tables nor symbols say where they begin; build all of it with "
      "-fasynchronous-unwind-tables"));
}

// Prints that calls of library functions by the command itself cannot be seen, though
// they were to be recorded. Its own functions are recorded, if it has hooks or -P.
void tell_unseen_calls(const recording::RecordOptions& options) {
  const std::string& command = options.command.front();
  if (options.library_calls == recording::LibraryCalls::kNone ||
      !recording::computes_call_slots_untrusted(recording::find_program(command))) {
    return;
  }
  reader::print_message(absl::StrCat(
      "calls of library functions by ", reader::escaped(command),
      " are not recorded: its code computes where their addresses are, as with "
      "-mcmodel=large"));
}

void tell_switched_off(const recorder::CollectorSummary& summary) {
  const size_t count = summary.totals.patches.switched_off().size();
  if (count == 0) return;
  reader::print_message(absl::StrCat(
      reader::count_text(count, "function"), count == 1 ? " was" : " were",
      " switched off, because ", count == 1 ? "its" : "their",
      " calls filled the buffer: arctrace info -v names ", count == 1 ? "it" : "them",
      "; those that -P names without wildcards stay on"));
}

void tell_overwritten(const recorder::CollectorSummary& summary) {
  const size_t count = summary.totals.patches.overwritten().size();
  if (count == 0) return;
  reader::print_message(absl::StrCat(
      "calls of ", reader::count_text(count, "function"),
      " are missing since a uprobe, or code of the program such as XRay's, has written "
      "over ",
      count == 1 ? "its" : "their", " hook (arctrace info -v names ",
      count == 1 ? "it" : "them",
      "): -fpatchable-function-entry=6 has room for a uprobe beside it"));
}

void tell_program_refusal(const recorder::CollectorSummary& summary) {
  const uint32_t refusal = program_refusal(summary.totals.patches);
  if (refusal == 0) return;
  reader::print_message(absl::StrCat(
      "nothing of some program was patched for -P: ", reader::patch_refusal_text(refusal),
      "; arctrace info says of which"));
}

void tell_library_refusals(const recorder::CollectorSummary& summary) {
  const std::set<uint32_t>& refusals = summary.totals.patches.library_refusals();
  if (refusals.empty()) return;
  reader::print_message(absl::StrCat("nothing of some library was patched for -P: ",
                                     reader::patch_refusal_text(*refusals.begin()),
                                     "; arctrace info says of which"));
}

// Prints that small functions were skipped, if other functions of the program were
// recorded: if not, the hint about own functions says the same. With -Z it is what was
// asked for.
void tell_small(const recorder::CollectorSummary& summary,
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

void tell_snapshots(const recorder::CollectorSummary& summary,
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

// Prints what makes a large file smaller the next time. A file whose size was limited is
// as large as was asked for.
void tell_large(const recorder::CollectorSummary& summary,
                const recording::RecordOptions& options) {
  constexpr uint64_t kLarge = uint64_t{1} << 30;
  if (summary.file_bytes < kLarge || options.flight.snapshots_kept.bytes != 0) return;
  reader::print_message(absl::StrCat(
      "the file is large: which calls it has most of, arctrace report --view=flat "
      "--sort=calls ",
      reader::shell_file(options.output.path),
      " shows; -t 20us leaves out all that are shorter, and --size-limit=1G removes the "
      "oldest records"));
}

}  // namespace

std::string patch_advice(const std::string& program) {
  const std::string engine = engine_of_program(program);
  if (engine.empty()) return "-P . its own functions";
  return absl::StrCat("-P ", reader::engine_pattern(engine), " functions of ",
                      reader::escaped(engine));
}

void tell_patches(const recorder::CollectorSummary& summary,
                  const recording::RecordOptions& options, bool is_refusal_said) {
  tell_switched_off(summary);
  tell_overwritten(summary);
  if (!is_refusal_said) tell_program_refusal(summary);
  tell_library_refusals(summary);
  tell_small(summary, options);
}

void print_end(const recorder::CollectorSummary& summary,
               const recording::RecordOptions& options, const BufferView& buffer,
               bool has_warned) {
  has_warned = warn_of_missing_memory(buffer) || has_warned;
  if (summary.processes == 0) {
    if (!has_warned) reader::print_warning("no process joined the session");
  } else {
    warn_of_unmatched(options.filter,
                      IpcAtomics::load_relaxed(buffer.control().patterns_matched),
                      options.command.front(), &summary);
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
  std::string hint;
  if (summary.processes != 0 && !has_warned) hint = own_functions_hint(summary, options);
  if (!hint.empty()) reader::print_message(hint);
  if (summary.processes != 0) tell_unseen_calls(options);
  tell_unused_entries(summary, options);
  tell_patches(summary, options, !hint.empty());
  tell_snapshots(summary, options);
  tell_large(summary, options);
  if (summary.overwritten != 0) tell_kept(options.output.path, options.keep_ns);
  reader::print_message(recording_summary_line(summary, options.output.path));
}

std::string recording_summary_line(const recorder::CollectorSummary& summary,
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
  // What the buffer says may be anything.
  const recorder::ProgramChanges::Counts changes = summary.totals.changes.count();
  const auto less = [](uint64_t all, uint64_t part) { return all - std::min(all, part); };
  absl::StrAppend(
      &line, reader::kernel_records_text(summary.totals.kernel - summary.removed.kernel),
      ", ",
      reader::count_text(less(summary.processes, changes.processes), "process",
                         "processes"),
      ", ", reader::count_text(less(summary.threads, changes.threads), "thread"), ", ",
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

absl::Status write_and_tell(const recorder::Buffer& buffer,
                            const recording::SnapshotFileOptions& options) {
  PrintedEvents events;
  const auto written = recording::write_buffer_to_file(buffer, options, events);
  if (!written.ok()) return written.status();
  reader::print_message(absl::StrCat(reader::count_text(written->records, "record"), ", ",
                                     reader::bytes_text(written->bytes), ", ",
                                     options.output.path));
  tell_kept(options.output.path, 0);
  return absl::OkStatus();
}

}  // namespace arctrace::cli
