// Which records `arctrace dump` shows, and what `arctrace live` is asked to show.
#pragma once

#include <absl/container/flat_hash_set.h>

#include <cstdint>
#include <string>
#include <vector>

#include "reader/cli/options/options.hpp"
#include "reader/replay/replay.hpp"
#include "reader/streams/record_describer.hpp"
#include "reader/trace/trace.hpp"
#include "src/recording/options.hpp"

namespace arctrace::cli {

// Which records `arctrace dump` shows. Empty sets let everything through.
struct DumpFilter {
  absl::flat_hash_set<uint32_t> pids, tids;
  absl::flat_hash_set<uint16_t>
      types;                   // of records; empty: all, unless only gaps are wanted
  bool asks_for_gaps = false;  // among the types
  std::vector<std::string> functions;  // patterns
  TimeRange range;

  bool wants_thread(const reader::Definitions& definitions,
                    reader::ThreadIndex thread) const;
  bool is_set() const {
    return selects_records() || !pids.empty() || !tids.empty() ||
           range.from_ns != INT64_MIN || range.until_ns != INT64_MAX;
  }
  // Whether only some types or functions are wanted.
  bool selects_records() const {
    return !types.empty() || asks_for_gaps || !functions.empty();
  }
  bool wants_type(uint16_t type) const {
    return types.empty() ? !asks_for_gaps : types.contains(type);
  }
  bool wants_gaps() const { return asks_for_gaps || !selects_records(); }
  bool wants_time(int64_t time_ns) const {
    return time_ns >= range.from_ns && time_ns < range.until_ns;
  }
  // Whether the record is an entry into a wanted function, or an exit from one.
  // `patterns`: those of `functions`.
  bool wants_function(const reader::Record& record, const reader::StackEffect& effect,
                      reader::ProcessIndex process, reader::FunctionResolver& resolver,
                      reader::FunctionPatterns& patterns) const;
};

// Adds --pid and --tid, whose numbers are stored in `pids` and `tids`.
void add_thread_options(
    CLI::App& app, std::vector<uint32_t>& pids, std::vector<uint32_t>& tids,
    const char* pid_name = "--pid",
    const char* pid_help =
        "print only records of these processes; several are separated by commas");

// What `arctrace live` is asked to show.
struct LiveOptions {
  std::vector<std::string> target;  // a session; or "" and a command
  bool plain = false;
  OutputFormat format = OutputFormat::kText;
  DumpFilter filter;                 // of lines
  std::vector<std::string> where;    // the same
  bool full_names = false;           // of functions, on the screen
  std::vector<uint32_t> pids, tids;  // the filter's; without a target, pids are joined
  recording::RecordOptions record;   // of a command, or of processes that are joined
};

}  // namespace arctrace::cli
