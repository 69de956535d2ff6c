#include "reader/cli/commands/replay_setup.hpp"

#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "reader/analysis/tree_groups.hpp"
#include "reader/render/output.hpp"
#include "reader/render/session_text.hpp"
#include "reader/render/text_style.hpp"
#include "reader/streams/replay_run.hpp"
#include "reader/trace/text_escape.hpp"
#include "src/recording/patterns/function_pattern.hpp"

namespace arctrace::cli {

reader::SymbolOptions symbol_options(bool allow_download) {
  reader::SymbolOptions symbols;
  symbols.allow_download = allow_download;
  return symbols;
}

reader::ReplayOptions replay_options(const ReplayFilterOptions& options,
                                     const reader::Trace& trace) {
  reader::ReplayOptions made = reader::replay_options_of(trace);
  made.filter = options.filter;
  made.all_threads = options.all_threads;
  made.full_names = options.full_names;
  if (options.has_thread_filter()) {
    made.wants_thread = [&options, &trace](reader::ThreadIndex thread) {
      return options.wants_thread(trace.definitions(), thread);
    };
  }
  made.hook_costs = trace.session().hook_costs;
  return made;
}

ReadProgress::ReadProgress(const reader::Trace& trace, bool prints_meanwhile)
    : trace_(trace),
      bytes_(trace.bytes_to_read()),
      start_(std::chrono::steady_clock::now()),
      line_(std::in_place, !prints_meanwhile || ::isatty(STDOUT_FILENO) == 0) {}

ReadProgress::~ReadProgress() {
  line_.reset();
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
  reader::print_detail(absl::StrCat(
      "read ", reader::count_text(trace_.summary().records, "record"), " in ",
      reader::bytes_text(bytes_), " of ", reader::escaped(trace_.session().path), " in ",
      reader::duration_text(static_cast<uint64_t>(passed.count() * 1e9))));
}

void ReadProgress::update(const reader::ReadSoFar& so_far) {
  line_->update(so_far.records,
                static_cast<double>(so_far.bytes) / static_cast<double>(bytes_ + 1));
}

void ReadProgress::count(const reader::Record& record) {
  constexpr uint64_t kRecordsBetweenUpdates = 1 << 14;
  counted_.bytes += reader::bytes_of(record, trace_.session());
  if (++counted_.records % kRecordsBetweenUpdates == 0) update(counted_);
}

absl::Status lacks_kernel_records(const std::string& path, const std::string& option) {
  return absl::FailedPreconditionError(
      absl::StrCat(path, " has no records of the kernel, which ", option,
                   " needs: record with --kernel"));
}

absl::Status check_whole(const reader::Session& session, const std::string& path,
                         bool partial, const char* does) {
  if (session.finished || partial) return absl::OkStatus();
  return absl::FailedPreconditionError(
      session.raw
          ? absl::StrCat(path,
                         " is a session's buffer, not a trace file: arctrace snapshot "
                         "writes a file of it, --partial ",
                         does, " what it holds now")
          : absl::StrCat(path, " was cut off: --partial ", does,
                         " what it has up to there"));
}

namespace {

bool has_calls(const reader::Replay& replay) {
  const reader::CallTree& tree = replay.tree();
  const auto threads = replay.threads();
  return std::any_of(threads.begin(), threads.end(), [&](const auto& thread) {
    return tree[thread.root].first_child != reader::kNoNode;
  });
}

// Returns the first few processes: "100 sh, 101 ls".
std::string processes_text(const reader::Definitions& definitions) {
  constexpr size_t kShown = 6;
  const auto processes = definitions.processes();
  std::string text;
  for (size_t i = 0; i < std::min(processes.size(), kShown); ++i) {
    absl::StrAppend(
        &text, text.empty() ? "" : ", ", processes[i].pid, " ",
        reader::process_label(definitions, static_cast<reader::ProcessIndex>(i)));
  }
  if (processes.empty()) return "no processes";
  return processes.size() > kShown ? text + ", ..." : text;
}

// Returns "the trace lasts from 0.0 s to 1.5 s": the time that its threads' lifetimes
// cover. The records of a range do not tell that.
std::string lives_text(const reader::Replay& replay) {
  const reader::Definitions& definitions = replay.definitions();
  int64_t first_ns = INT64_MAX;
  int64_t last_ns = INT64_MIN;
  for (reader::ThreadIndex i = 0; i < definitions.threads().size(); ++i) {
    const int64_t begin_ns = definitions.begin_ns(i);
    const int64_t end_ns = std::min(definitions.life_end_ns(i), replay.last_record_ns());
    if (begin_ns > end_ns) continue;
    first_ns = std::min(first_ns, begin_ns);
    last_ns = std::max(last_ns, end_ns);
  }
  if (first_ns > last_ns) return "the trace has no threads";
  return absl::StrCat("the trace lasts from ", reader::seconds_text(first_ns), " s to ",
                      reader::seconds_text(last_ns), " s");
}

}  // namespace

std::string unmatched_functions(const std::vector<std::string>& patterns,
                                const ReplayFilterOptions& options,
                                const reader::Replay& replay) {
  if (!options.filter.read_range().is_all()) return {};
  const reader::Functions& functions = replay.functions();
  std::vector<std::string> names;
  for (reader::FunctionId id = reader::kUnknownFunction; id < functions.size(); ++id) {
    names.push_back(functions[id].name);
  }
  return recording::unmatched_pattern(patterns, names);
}

void warn_of_stamps(const reader::Session& session) {
  const std::string stamps = reader::stamps_text(session);
  if (!stamps.empty()) reader::print_warning(stamps);
}

void warn_of_empty_replay(const ReplayFilterOptions& options,
                          const reader::Replay& replay) {
  if (replay.threads().empty()) {
    if (options.has_thread_filter()) {
      reader::print_warning(reader::escaped(
          absl::StrCat("no thread passes --pid, --tid and --process; the trace has ",
                       processes_text(replay.definitions()))));
    } else if (options.filter.has_range()) {
      reader::print_warning(
          absl::StrCat("no thread has time in --time-range; ", lives_text(replay)));
    }
    return;
  }
  if (!options.filter.has_calls()) return;
  std::string problem = unmatched_functions(options.filter.only, options, replay);
  if (!has_calls(replay)) {
    problem =
        absl::StrCat("no call passes the filters", problem.empty() ? "" : ": ", problem);
  }
  if (!problem.empty()) reader::print_warning(reader::escaped(problem));
}

}  // namespace arctrace::cli
