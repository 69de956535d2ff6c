// The definitions of a session: the names of ids, the modules at addresses, the threads
// of writer identities.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reader/trace/call_filters.hpp"
#include "reader/trace/kernel_event_times.hpp"
#include "reader/trace/kernel_gaps.hpp"
#include "reader/trace/missing_files.hpp"
#include "reader/trace/record.hpp"
#include "reader/trace/stored_symbols.hpp"

namespace arctrace::reader {

// All definitions of one session, whatever their order in the trace. A fork child
// inherits the definitions of its parent. Look-ups take constant time, for each parent,
// or for modules logarithmic time. Not thread-safe.
class Definitions {
 public:
  // How many parents are searched: hostile parent ids may form a ring.
  static constexpr int kForkDepthMax = 256;

  std::span<const Process> processes() const { return processes_; }
  std::span<const Thread> threads() const { return threads_; }
  // Whether the kernel's records are there, which say when threads had a CPU. Takes time
  // for each thread.
  bool has_dispatches() const;

  // nullptr if the index is kNoIndex or out of range.
  const Process* process(ProcessIndex index) const;
  const Thread* thread(ThreadIndex index) const;
  // The process of a thread, or nullptr.
  const Process* process_of(ThreadIndex index) const;
  // The pid of a thread's process, 0 if it is not known; whether it is known.
  uint32_t pid_of(ThreadIndex index) const;
  bool has_pid(ThreadIndex index) const;

  // When the program was executed of which this is the first thread, or the earliest time
  // at which it may have been, or when its process was forked; INT64_MIN if it is not the
  // first, or none of these is known.
  int64_t life_begin_ns(ThreadIndex thread) const;
  // The first of the collector's word that the thread is gone, and the end of its
  // process; INT64_MAX: neither is recorded.
  int64_t life_end_ns(ThreadIndex thread) const;

  // When the thread began as far as is known: the first one of a program with that.
  int64_t begin_ns(ThreadIndex thread) const;

  // By session identity; kNoIndex if unknown.
  ProcessIndex find_process(uint32_t process_id) const;
  ThreadIndex find_thread(uint32_t writer) const;

  // The text of a name id in a process, or nullopt. These are raw bytes of the trace:
  // escape them (text_escape.hpp) before they reach a terminal or JSON.
  std::optional<std::string_view> name(ProcessIndex process, uint32_t id) const;

  // The entries of the filter of calls with which the process was started (SPEC.md
  // REC-13), or which it has from its parent; raw bytes. Empty: there is none.
  std::vector<std::string> call_filter(ProcessIndex process) const;

  // The names that the process itself has defined, in no order; raw bytes, as above.
  std::vector<std::string_view> names(ProcessIndex process) const;

  // The layout of an event id in a process, or nullptr.
  const EventLayout* layout(ProcessIndex process, uint32_t event_id) const;
  // Those that the process itself has defined, in no order.
  std::vector<const EventLayout*> layouts(ProcessIndex process) const;

  // Whether the thread is the first one of a program that has joined as it ran.
  bool joined_running(ThreadIndex thread) const;
  // How many such programs there are.
  size_t programs_joined_running() const;

  // The module that was loaded at `address` at `time_ns`; if there was none, the first
  // one that was loaded there later, because a module may be used before it is recorded.
  // nullptr if there is no such module. The pointer is valid until this object changes.
  // The answer holds for every time in [loaded_ns, unloaded_ns) of the module.
  const Module* module_at(ProcessIndex process, uint64_t address, int64_t time_ns) const;

  // The names that the trace itself has for addresses.
  const StoredSymbols& symbols() const { return symbols_; }

  // In overwrite mode: of the blocks in which several threads write, those with records
  // from before this time may have been overwritten, with what signal handlers wrote
  // there. INT64_MIN: none were; INT64_MAX: all.
  int64_t chain_begin_ns() const { return chain_begin_ns_; }
  // In overwrite mode, sorted by CPU.
  std::span<const CpuBegin> kernel_begins() const { return kernel_begins_; }
  // When records of the kernel's are missing, for whatever cause.
  const KernelGaps& kernel_gaps() const { return kernel_gaps_; }

  // The live filters that excluded functions.
  const LiveFilters& live_filters() const { return live_filters_; }

  // When the kernel's system calls, page faults ... were recorded.
  const KernelEventTimes& kernel_events() const { return kernel_events_; }

  // In order of time.
  std::span<const MissingFiles> missing_files() const { return missing_files_; }

  // The parent from which `process` inherits definitions, or kNoIndex.
  ProcessIndex inherited_from(ProcessIndex process) const;

  // A thread's name at `time_ns`, or its first one if it had none yet; empty if it never
  // had one. Raw bytes, as above.
  std::string_view thread_name(ThreadIndex thread, int64_t time_ns) const;

  // ---- Building: by the loader, and by tests ----

  // Adds it, or returns the index of the one with the same identity, which stays as it
  // is.
  ProcessIndex add_process(Process process);
  ThreadIndex add_thread(Thread thread);
  Process* mutable_process(ProcessIndex index);
  Thread* mutable_thread(ThreadIndex index);
  // False, and nothing is changed, if the id has another meaning already.
  bool add_name(ProcessIndex process, uint32_t id, std::string text);
  bool add_layout(ProcessIndex process, EventLayout layout);
  StoredSymbols& mutable_symbols() { return symbols_; }
  void set_chain_begin(int64_t begin_ns) { chain_begin_ns_ = begin_ns; }
  void set_kernel_begins(std::vector<CpuBegin> begins) {
    kernel_begins_ = std::move(begins);
  }
  KernelGaps& mutable_kernel_gaps() { return kernel_gaps_; }
  LiveFilters& mutable_live_filters() { return live_filters_; }
  KernelEventTimes& mutable_kernel_events() { return kernel_events_; }
  void set_missing_files(std::vector<MissingFiles> missing) {
    missing_files_ = std::move(missing);
  }
  // Modules of the process that overlap it end at `module.loaded_ns`.
  void add_module(ProcessIndex process, Module module);
  // Sets the hook_kind of the process' own module that was loaded at `address` at
  // `time_ns`, if there was one. The first kind of a module counts.
  void set_hook_kind(ProcessIndex process, uint64_t address, int64_t time_ns,
                     uint32_t kind);
  // False if no module with this start is loaded, or was unloaded at that time or later.
  bool end_module(ProcessIndex process, uint64_t start, int64_t time_ns);

 private:
  // What is defined in a process, and is not in Process.
  struct Scope {
    absl::flat_hash_map<uint32_t, std::string> names;
    absl::flat_hash_map<uint32_t, EventLayout> layouts;
    // Modules that are loaded at the moment of building: start -> index.
    absl::btree_map<uint64_t, size_t> loaded;
    // The latest loading and unloading that was reported, by start.
    struct Reported {
      int64_t loaded_ns = INT64_MIN;
      int64_t gone_ns = INT64_MIN;
    };
    absl::flat_hash_map<uint64_t, Reported> reported;
    // Indices of modules by (start, loaded_ns), and for each the largest end up to it.
    // The first look-up after a change brings them up to date.
    std::vector<uint32_t> by_start;
    std::vector<uint64_t> max_end;
  };

  // Of a STRING, also that of the filter of calls.
  std::optional<std::string_view> text_of(ProcessIndex process, uint32_t id) const;
  const Module* own_module_at(ProcessIndex process, uint64_t address,
                              int64_t time_ns) const;
  void index_modules(ProcessIndex process) const;

  std::vector<Process> processes_;
  mutable std::vector<Scope> scopes_;  // by ProcessIndex
  std::vector<Thread> threads_;
  StoredSymbols symbols_;
  int64_t chain_begin_ns_ = INT64_MIN;
  std::vector<CpuBegin> kernel_begins_;
  KernelGaps kernel_gaps_;
  LiveFilters live_filters_;
  KernelEventTimes kernel_events_;
  std::vector<MissingFiles> missing_files_;
  absl::flat_hash_map<uint32_t, ProcessIndex> process_by_id_;
  absl::flat_hash_map<uint32_t, ThreadIndex> thread_by_writer_;
};

}  // namespace arctrace::reader
