// The processes of a trace as a tree of commands: which started which, how each ended,
// how long it lasted. A process that executes several programs is one command.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "reader/replay/replay.hpp"

namespace arctrace::reader {

// One command, or several that are alike: of one name, started by the same command.
struct CommandSums {
  std::string name;  // of the last program, raw bytes of the trace
  uint64_t runs = 0, threads = 0;
  uint64_t wall_ns = 0, longest_ns = 0;  // of all runs, of the longest one
  CpuTime cpu;                           // of all threads
  // How many ended how: "0", "1" ...; "exited", with a status that is not recorded;
  // "open", at the end of the trace; "not known", as after a signal.
  std::map<std::string, uint64_t> exits;
  uint32_t pid = 0;                   // of the first run
  std::vector<CommandSums> children;  // the longest first
};

// How a process ended, as CommandSums::exits has it.
std::string process_exit_text(const Process& process);

// After the replay's finish(): the commands that no recorded one started.
std::vector<CommandSums> process_tree(const Replay& replay);

}  // namespace arctrace::reader
