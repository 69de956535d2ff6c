// The call trees of a report, by thread, by process, or merged into one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reader/replay/replay.hpp"

namespace arctrace::reader {

enum class Grouping : uint8_t { kThread, kProcess, kAll };

struct TreeGroup {
  uint32_t index = 0;  // group_index() of its threads
  std::string name;    // of the thread or program; raw bytes of the trace
  uint32_t pid = 0, tid = 0;
  uint64_t threads = 1;
  uint64_t end_within_ns = 0;  // of a thread: it may have ended that much earlier
  const CallTree* tree = nullptr;
  NodeIndex root = kNoNode;
};

// What tells the groups of a report apart: the ThreadIndex, the ProcessIndex, or 0.
uint32_t group_index(const Definitions& definitions, Grouping grouping,
                     ThreadIndex thread);

// A thread's last name, else its program's, else "thread".
std::string thread_label(const Definitions& definitions, ThreadIndex thread);
// The name by which a process' program was called, which may be that of a link; else that
// of its file; empty if nothing says either.
std::string process_name(const Definitions& definitions, ProcessIndex process);
// The same; else "process", beside which its number stands.
std::string process_label(const Definitions& definitions, ProcessIndex process);

// The trees of a finished replay, as they are or merged. The replay must outlive this
// object.
class TreeGroups {
 public:
  // Whether the CPUs' `Interrupt` threads stand behind the others, and are merged into
  // "all". By process they are a group of their own.
  enum class Of : uint8_t { kThreads, kThreadsAndInterrupts };

  TreeGroups(const Replay& replay, Grouping grouping, Of of = Of::kThreads);

  std::span<const TreeGroup> groups() const { return groups_; }
  Grouping grouping() const { return grouping_; }

 private:
  void add_threads(const Replay& replay, std::span<const ThreadTree> trees);
  void add_merged(const Replay& replay, std::span<const ThreadTree> trees);

  Grouping grouping_;
  CallTree merged_;
  std::vector<TreeGroup> groups_;
};

}  // namespace arctrace::reader
