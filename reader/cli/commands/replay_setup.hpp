// What the commands that replay a trace share, and how `report`, `graph` and `export` run
// (report_run.cpp, export_run.cpp).
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reader/cli/options/report_options.hpp"
#include "reader/cli/options/trace_options.hpp"
#include "reader/render/terminal.hpp"
#include "reader/replay/replay.hpp"
#include "reader/streams/replay_run.hpp"
#include "reader/symbols/symbolizer.hpp"
#include "reader/trace/trace.hpp"

namespace arctrace::cli {

// `allow_download`: debug files may be downloaded.
reader::SymbolOptions symbol_options(bool allow_download);

// Returns the options of a replay, without listeners. Both arguments must outlive it.
reader::ReplayOptions replay_options(const ReplayFilterOptions& options,
                                     const reader::Trace& trace);

// The line of progress of a command that reads a trace, with the share that it has read.
// With -v a line says at the end what was read.
class ReadProgress {
 public:
  // `trace` must outlive this object. `prints_meanwhile`: the command writes while it
  // reads, so that there is no line if that goes to a terminal.
  explicit ReadProgress(const reader::Trace& trace, bool prints_meanwhile = false);
  ~ReadProgress();
  ReadProgress(const ReadProgress&) = delete;
  ReadProgress& operator=(const ReadProgress&) = delete;

  void update(const reader::ReadSoFar& so_far);
  // Counts a record, and updates the line once every some thousand.
  void count(const reader::Record& record);

 private:
  const reader::Trace& trace_;
  const uint64_t bytes_;
  const std::chrono::steady_clock::time_point start_;
  std::optional<reader::Progress> line_;
  reader::ReadSoFar counted_{0, 0, INT64_MIN};
};

// Returns an error for a buffer, and for a file that was cut off, unless `partial` asks
// for what it has. `does` is what a command does to a trace, such as "exports".
absl::Status check_whole(const reader::Session& session, const std::string& path,
                         bool partial, const char* does);

// The error about a trace without records of the kernel. `option`: what needs them.
absl::Status lacks_kernel_records(const std::string& path, const std::string& option);

// Returns what is wrong with the first of `patterns` that matches no function of a
// finished replay; empty if each matches one, or if only a range was read, which does not
// tell all functions.
std::string unmatched_functions(const std::vector<std::string>& patterns,
                                const ReplayFilterOptions& options,
                                const reader::Replay& replay);

// Prints a warning if the times of the trace are not exact, for commands whose output
// does not say so.
void warn_of_stamps(const reader::Session& session);

// Prints a warning if no thread of a finished replay, or no call, passes the filters.
void warn_of_empty_replay(const ReplayFilterOptions& options,
                          const reader::Replay& replay);

// Runs `report` or `graph`: reads the trace and writes the view to standard output.
// Returns the exit status: 0, or 130 after Ctrl-C. REQUIRES: complete_report_options()
// found no error.
absl::StatusOr<int> run_report(const ReportOptions& options);

// Runs `export`: reads the trace and writes it in the format that is asked for. Returns
// the exit status: 0, or 130 after Ctrl-C. REQUIRES: complete_export_options() found no
// error.
absl::StatusOr<int> run_export(const ExportOptions& options);

}  // namespace arctrace::cli
