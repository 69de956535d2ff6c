#include "reader/cli/commands/replay_setup.hpp"

#include <absl/strings/str_cat.h>

#include "reader/streams/replay_run.hpp"

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
  if (options.has_thread_filter()) {
    made.wants_thread = [&options, &trace](reader::ThreadIndex thread) {
      return options.wants_thread(trace.definitions(), thread);
    };
  }
  made.hook_costs = trace.session().hook_costs;
  return made;
}

double share_read(const reader::Trace& trace, uint64_t records) {
  uint64_t bytes = 0;
  for (const reader::BlockRef& block : trace.blocks()) bytes += block.size;
  constexpr double kRecordBytes = 16;
  return static_cast<double>(records) * kRecordBytes / static_cast<double>(bytes + 1);
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

}  // namespace arctrace::cli
