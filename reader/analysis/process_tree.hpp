// The processes of a trace as a tree of commands: which started which, how each ended,
// how long it lasted. A process that executes several programs is one command.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reader/replay/replay.hpp"

namespace arctrace::reader {

// One command, or several that are alike: of one name, started by the same command.
struct CommandSums {
  std::string name;  // of the last program, raw bytes of the trace
  uint64_t runs = 0, threads = 0;
  // The runs whose end is known: the time of all of them, that of the longest one, and
  // how much earlier, in all, they may have ended.
  uint64_t wall_ns = 0, longest_ns = 0, end_within_ns = 0;
  // The number of the other runs: they may have lasted less than half of the time from
  // their begin to when somebody saw that they were gone.
  uint64_t ends_not_known = 0;
  CpuTime cpu;  // of all threads
  // The number of runs by how they ended: "0", "1" ...; "signal 15"; "exited", with a
  // status that is not recorded; "open", at the end of the trace; "not known", as after a
  // signal without the kernel's records.
  std::map<std::string, uint64_t> exits;
  uint32_t pid = 0;                   // of the first run
  std::vector<CommandSums> children;  // the longest first
};

// One process, in its place in the tree.
struct ProcessRun {
  ProcessIndex process = kNoIndex;  // the last program that it executed
  uint32_t depth = 0;               // 0: no recorded process started it
  uint32_t pid = 0;
  uint64_t threads = 0;
  int64_t start_ns = 0;
  std::optional<uint64_t> wall_ns;  // nullopt: its end is not known
  CpuTime cpu;                      // of all its threads
  std::string exit;                 // process_exit_text()
};

// How a process ended, as CommandSums::exits has it. `wait_status`:
// Replay::wait_status().
std::string process_exit_text(const Process& process, std::optional<int32_t> wait_status);

// REQUIRES: the replay is finished. Returns the commands that no recorded one started.
std::vector<CommandSums> process_tree(const Replay& replay);

// REQUIRES: the replay is finished. Returns the processes that have a part in the report,
// and those that started them: at most `limit` that lasted longest, and what is above
// them. Each comes after the one that started it, and before those that were started
// later.
std::vector<ProcessRun> process_runs(const Replay& replay, size_t limit);

}  // namespace arctrace::reader
