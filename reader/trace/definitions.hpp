// What the processes of a session said about themselves: ids become names, addresses
// become modules, writers become threads.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reader/trace/record.hpp"

namespace arctrace::reader {

// All definitions of one session. Names that were defined later than used resolve too;
// a fork child falls back on what its parent had defined.
class Definitions {
 public:
  // How far a chain of forks is followed up: hostile parent ids may form a ring.
  static constexpr int kForkDepthMax = 256;

  std::span<const Process> processes() const { return processes_; }
  std::span<const Thread> threads() const { return threads_; }

  // nullptr if the index is kNoIndex or out of range.
  const Process* process(ProcessIndex index) const;
  const Thread* thread(ThreadIndex index) const;
  // The process of a thread, or nullptr.
  const Process* process_of(ThreadIndex index) const;
  // The number of a thread's process, and whether it is known; else 0.
  uint32_t pid_of(ThreadIndex index) const;
  bool has_pid(ThreadIndex index) const;

  // By session identity; kNoIndex if unknown.
  ProcessIndex find_process(uint32_t process_id) const;
  ThreadIndex find_thread(uint32_t writer) const;

  // The text of a name id in a process, or nullopt. Raw bytes of the trace: escape
  // them (text_escape.hpp) before they reach a terminal or JSON.
  std::optional<std::string_view> name(ProcessIndex process, uint32_t id) const;

  // An event's layout in a process, or nullptr.
  const EventLayout* layout(ProcessIndex process, uint32_t event_id) const;

  // The module whose range holds `address` in the map in force at `time_ns`; if there
  // is none, the first one that was loaded there later (it was used before it was
  // recorded). nullptr if there is no such module. A pointer stays valid as long as
  // this object is not changed; the answer holds for every time in
  // [loaded_ns, unloaded_ns) of the module.
  const Module* module_at(ProcessIndex process, uint64_t address, int64_t time_ns) const;

  // The parent whose definitions hold in `process` too, or kNoIndex.
  ProcessIndex inherited_from(ProcessIndex process) const;

  // A thread's name in force at `time_ns` (or its first, if that is earlier); empty if
  // it never had one. Raw bytes, as above.
  std::string_view thread_name(ThreadIndex thread, int64_t time_ns) const;

  // ---- Building: by the loader, and by tests ----

  // Adds one, or returns the index of the one with the same identity unchanged.
  ProcessIndex add_process(Process process);
  ThreadIndex add_thread(Thread thread);
  Process* mutable_process(ProcessIndex index);
  Thread* mutable_thread(ThreadIndex index);
  // False, and nothing changed, if the id has another meaning already.
  bool add_name(ProcessIndex process, uint32_t id, std::string text);
  bool add_layout(ProcessIndex process, EventLayout layout);
  // Ends at `module.loaded_ns` whatever of the process' modules it overlaps.
  void add_module(ProcessIndex process, Module module);
  // False if no module that starts there is loaded, nor was unloaded then or later.
  bool end_module(ProcessIndex process, uint64_t start, int64_t time_ns);

 private:
  // What belongs to a process and is not in Process.
  struct Scope {
    absl::flat_hash_map<uint32_t, std::string> names;
    absl::flat_hash_map<uint32_t, EventLayout> layouts;
    // Modules that are loaded at the moment of building: start -> index.
    absl::btree_map<uint64_t, size_t> loaded;
    // By start: the latest loading and unloading there that was said.
    struct Said {
      int64_t loaded_ns = INT64_MIN;
      int64_t gone_ns = INT64_MIN;
    };
    absl::flat_hash_map<uint64_t, Said> said;
    // Indices of modules by (start, loaded_ns), and the largest end so far; brought up to
    // date by the first question after a change.
    std::vector<uint32_t> by_start;
    std::vector<uint64_t> max_end;
  };

  const Module* own_module_at(ProcessIndex process, uint64_t address,
                              int64_t time_ns) const;
  void index_modules(ProcessIndex process) const;

  std::vector<Process> processes_;
  mutable std::vector<Scope> scopes_;  // by ProcessIndex
  std::vector<Thread> threads_;
  absl::flat_hash_map<uint32_t, ProcessIndex> process_by_id_;
  absl::flat_hash_map<uint32_t, ThreadIndex> thread_by_writer_;
};

}  // namespace arctrace::reader
