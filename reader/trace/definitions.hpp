// The definitions of a session, which give records their meaning: its processes and
// threads, the names of ids, and the modules at addresses.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reader/trace/record.hpp"
#include "reader/trace/recorded_times.hpp"
#include "reader/trace/stored_symbols.hpp"

namespace arctrace::reader {

// What the shim names the module with the first instructions of functions that it has
// patched, which has no file.
inline constexpr std::string_view kPatchImagePath = "[arctrace]";

struct Module {
  uint64_t start = 0, end = 0, bias = 0;  // addresses; file address = address - bias
  int64_t loaded_ns = INT64_MIN, unloaded_ns = INT64_MAX;
  uint32_t flags = 0;  // ARCTRACE_MODULE_*
  // The kind of hook of its functions with compiled-in hooks, if it is a kind of its own
  // (enum arctrace_hook_kind): from HOOKED; 0: none.
  uint32_t hook_kind = 0;
  std::string path;
  std::vector<std::byte> build_id;
};

// Code that a process generated and named.
struct Code {
  uint64_t start = 0, end = 0;  // addresses
  int64_t since_ns = 0;         // when it was put at these addresses
  std::string name;
};

// A file that named a process' generated code.
struct CodeFile {
  uint32_t kind = 0;                 // enum arctrace_code_file_kind
  uint64_t names = 0, left_out = 0;  // CODE records, and names that have none
  bool is_cut = false;               // the file is longer than the part that was read
  std::string path;                  // as the process saw it
};

struct EventField {
  uint32_t type;  // enum arctrace_field_type
  std::string name;
  bool operator==(const EventField&) const = default;
};

struct EventLayout {
  uint32_t id, level;
  std::string name;
  std::vector<EventField> fields;
  bool operator==(const EventLayout&) const = default;
};

// A time in which a thread only started the tracer.
struct TracerStart {
  int64_t from_ns, until_ns;
};

struct Process {
  uint32_t id = 0, parent_id = 0;  // session identities
  uint32_t pid = 0, ppid = 0, uid = 0;
  // enum arctrace_process_origin; 0: the trace has no PROCESS of it, at most its pid
  // (else 0) and start.
  uint32_t origin = 0;
  uint32_t forker = 0;  // session identity of the thread that forked it; 0: not known
  uint32_t pid_namespace = 0;  // the inode of the one of pid and ppid; 0: the first
  int64_t start_ns = 0;
  int64_t forked_ns = INT64_MIN;  // when its parent called fork; INT64_MIN: not known
  int64_t end_ns = INT64_MAX;
  // When the process executed its program: INT64_MIN if it has no such record. When main
  // was called, and returned: INT64_MAX if that is not recorded.
  int64_t exec_ns = INT64_MIN;
  uint64_t exec_within_ns = 0;  // it may have been that much later
  int64_t main_ns = INT64_MAX, exit_ns = INT64_MAX;
  // When its first thread only started the tracer, in order of time.
  std::vector<TracerStart> tracer_starts;
  // If exec_ns is not known: the earliest time at which the process may have begun;
  // INT64_MIN: not known.
  int64_t earliest_ns = INT64_MIN;
  bool ran_before = false;  // it joined while it ran, at start_ns
  // The open frames of the thread that forked the process, outermost first; 0 stands for
  // all frames further out.
  std::optional<std::vector<uint64_t>> inherited;
  bool is_patched = false;  // functions without a compiled-in hook were patched
  uint32_t patch_refusal =
      0;  // why none of the program was (patch_refusal_text); 0: none
  std::set<uint32_t> helpers;  // its children that are a tracer's own, by pid
  // The patched functions whose calls filled the buffer: their addresses, and when they
  // were switched off.
  std::map<uint64_t, int64_t> switched_off;
  bool has_hook_kinds = false;  // some of its modules have a hook_kind
  uint32_t end_how = 0;         // enum arctrace_process_end; 0: none recorded
  int32_t end_status = -1;
  // If the process did not record its end, such as by a signal: when the collector saw
  // the last of its threads end; INT64_MAX: it saw no end.
  int64_t died_ns = INT64_MAX;
  // Who copied the buffer found the process gone, and nobody had looked before.
  bool died_unseen = false;
  std::optional<int32_t> wait_status;  // of the recorder's command
  uint32_t end_writer = 0;  // the thread that ended it, by its session identity
  std::string executable;
  std::vector<std::string> arguments;
  std::vector<Module> modules;
  std::vector<Code> code;  // in the order of the records
  std::vector<CodeFile> code_files;

  // When the process ended, as far as that was recorded or seen; INT64_MAX: neither.
  int64_t ended_ns() const { return end_ns != INT64_MAX ? end_ns : died_ns; }

  // When the process executed its program, or was forked; if that is not recorded, when
  // it joined.
  int64_t begin_ns() const {
    if (exec_ns != INT64_MIN) return exec_ns;
    return forked_ns != INT64_MIN ? forked_ns : start_ns;
  }
};

struct ThreadName {
  int64_t since_ns;
  std::string name;
};

// An open call that its thread had not recorded when it ended, or when the recording did.
struct WaitingCall {
  uint64_t key;
  uint64_t ticks;
  int64_t time_ns;
};

// The session identity of a CPU's `Interrupt` thread, less the CPU's number. The numbers
// of real threads are smaller.
inline constexpr uint32_t kInterruptsWriter = ARCTRACE_WRITER_KERNEL | 0x7FFF0000u;

struct Thread {
  uint32_t writer = 0;  // session identity
  ProcessIndex process = kNoIndex;
  uint32_t tid = 0;
  uint32_t tgid = 0;  // if of_kernel(): the number of its process
  // If of_kernel(): its process is not recorded, and the thread is known only by what
  // others do with it.
  bool is_foreign = false;
  // If of_kernel(): its process is recorded. The thread is replayed while no thread that
  // has written records has its number. If none ever has, and the thread is not the first
  // one of a process that has written some, `process` is that process, or one that only
  // the kernel's records tell. If it is the first one of a fork child that wrote records
  // only when it had executed a program, `process` is the child until then. Else
  // kNoIndex.
  bool is_silent = false;
  // Set if this is no thread, but stands for the interrupts that the CPU served (SPEC.md
  // READ-12).
  std::optional<uint32_t> interrupts_of;
  int64_t start_ns = 0;
  // When it only started the tracer, if it said so and is not its process' first one.
  std::optional<TracerStart> tracer_start;
  // When the thread ended: as it said itself, or when the collector saw that it was gone.
  int64_t end_ns = INT64_MAX;
  int64_t alive_ns = INT64_MIN;  // when the thread was last known to be alive
  // When the thread said last that it ends; INT64_MIN: it did not.
  int64_t announced_ns = INT64_MIN;
  // The thread is gone and no collector saw when, or another file has its next records:
  // only its last record is known.
  bool ended_unseen = false;
  // The thread's records before this time were overwritten; INT64_MIN: none were, or that
  // is not known before they are read.
  int64_t overwritten_until_ns = INT64_MIN;
  std::vector<ThreadName> names;
  // Waiting calls, outermost first; they are later than all records of the thread.
  std::vector<WaitingCall> waiting;
  uint64_t waiting_since_written = 0;  // user records that the thread had written then
  int64_t waiting_min_ns = 0;          // shorter calls are not recorded

  // Whether only the kernel's records name the thread: it has written none itself.
  bool of_kernel() const { return (writer & ARCTRACE_WRITER_KERNEL) != 0; }
};

// A CPU whose kernel records before this time may have been overwritten.
struct CpuBegin {
  uint32_t cpu;
  int64_t first_ns;
};

// Whether a writer may still commit the records that it left in progress.
enum class WriterOutcome : uint8_t { kUnknown, kDead, kAlive };

// The outcomes by writer identity; a missing one is kUnknown.
using WriterOutcomes = absl::flat_hash_map<uint32_t, WriterOutcome>;

// All definitions of one session, whatever their order in the trace. A fork child
// inherits the definitions of its parent. Look-ups take constant time, for each parent,
// or for modules logarithmic time. Not thread-safe.
class Definitions {
 public:
  // How many parents are searched: hostile parent ids may form a ring.
  static constexpr int kForkDepthMax = 256;

  std::span<const Process> processes() const { return processes_; }
  std::span<const Thread> threads() const { return threads_; }
  // Whether the trace has the kernel's records that say when threads had a CPU. Takes
  // time for each thread.
  bool has_dispatches() const;

  // Returns nullptr if the index is kNoIndex or out of range.
  const Process* process(ProcessIndex index) const;
  const Thread* thread(ThreadIndex index) const;
  // The process of a thread, or nullptr.
  const Process* process_of(ThreadIndex index) const;
  // The pid of a thread's process, 0 if it is not known; whether it is known.
  uint32_t pid_of(ThreadIndex index) const;
  bool has_pid(ThreadIndex index) const;

  // Returns when the program was executed whose first thread this is, or the earliest
  // time at which it may have been, or when its process was forked; INT64_MIN if the
  // thread is not the first, or none of these is known.
  int64_t life_begin_ns(ThreadIndex thread) const;
  // Returns when the collector noticed that the thread was gone, or the end of its
  // process, if that is earlier; INT64_MAX: neither is recorded.
  int64_t life_end_ns(ThreadIndex thread) const;

  // Returns when the thread began, as far as is known: a program's first thread with the
  // program.
  int64_t begin_ns(ThreadIndex thread) const;

  // Finds by session identity; kNoIndex if unknown.
  ProcessIndex find_process(uint32_t process_id) const;
  ThreadIndex find_thread(uint32_t writer) const;

  // Returns the text of a name id in a process, or nullopt. Texts are raw bytes of the
  // trace: escape them (text_escape.hpp) before they reach a terminal or JSON.
  std::optional<std::string_view> name(ProcessIndex process, uint32_t id) const;

  // Returns the entries of the filter of calls with which the process was started
  // (SPEC.md REC-13), or which it has from its parent; raw bytes. Empty: there is none.
  std::vector<std::string> call_filter(ProcessIndex process) const;

  // Returns the names that the process itself has defined, in no order; raw bytes, as
  // above.
  std::vector<std::string_view> names(ProcessIndex process) const;

  // Returns the layout of an event id in a process, or nullptr.
  const EventLayout* layout(ProcessIndex process, uint32_t event_id) const;
  // Returns the layouts that the process itself has defined, in no order.
  std::vector<const EventLayout*> layouts(ProcessIndex process) const;

  // Whether the thread is the first one of a program that joined while it ran.
  bool joined_running(ThreadIndex thread) const;
  // The number of such programs.
  size_t programs_joined_running() const;

  // Returns the module that was loaded at `address` at `time_ns`; if there was none, the
  // first one that was loaded there later, because a module may be used before it is
  // recorded. nullptr if there is no such module. The pointer is valid until this object
  // changes. The result holds for every time in [loaded_ns, unloaded_ns) of the module.
  const Module* module_at(ProcessIndex process, uint64_t address, int64_t time_ns) const;

  // The names of addresses that are stored in the trace itself.
  const StoredSymbols& symbols() const { return symbols_; }

  // In overwrite mode: the blocks in which several threads write may have been
  // overwritten if they had records from before this time, including what signal handlers
  // wrote there. INT64_MIN: none were; INT64_MAX: all.
  int64_t chain_begin_ns() const { return chain_begin_ns_; }
  // If the trace is a copy that was made while threads may have written: when that began.
  // Of later records some are there, and a thread with none is not known to have written
  // none. INT64_MAX: all records are there, as far as nothing else says.
  int64_t known_until_ns() const { return known_until_ns_; }
  // Where the records of CPUs begin in overwrite mode, sorted by CPU.
  std::span<const CpuBegin> kernel_begins() const { return kernel_begins_; }
  // The times in which records of the kernel's are missing, for whatever cause.
  const KernelGaps& kernel_gaps() const { return kernel_gaps_; }

  // The live filters that excluded functions.
  const LiveFilters& live_filters() const { return live_filters_; }

  // The times in which the kernel's system calls, page faults ... were recorded.
  const KernelEventTimes& kernel_events() const { return kernel_events_; }

  // The missing files, in order of time.
  std::span<const MissingFiles> missing_files() const { return missing_files_; }

  // The parent from which `process` inherits definitions, or kNoIndex.
  ProcessIndex inherited_from(ProcessIndex process) const;

  // A thread's name at `time_ns`, or its first one if it had none yet; empty if it never
  // had one. Raw bytes, as above.
  std::string_view thread_name(ThreadIndex thread, int64_t time_ns) const;

  // ---- Building: by the loader, and by tests ----

  // Adds the process, or returns the index of the one with the same identity, which stays
  // as it is.
  ProcessIndex add_process(Process process);
  ThreadIndex add_thread(Thread thread);
  Process* mutable_process(ProcessIndex index);
  Thread* mutable_thread(ThreadIndex index);
  // Returns false, and changes nothing, if the id has another meaning already.
  bool add_name(ProcessIndex process, uint32_t id, std::string text);
  bool add_layout(ProcessIndex process, EventLayout layout);
  StoredSymbols& mutable_symbols() { return symbols_; }
  void set_known_until(int64_t time_ns) { known_until_ns_ = time_ns; }
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
  // Adds a module. Modules of the process that overlap it end at `module.loaded_ns`.
  void add_module(ProcessIndex process, Module module);
  // Sets the hook_kind of the process' own module that was loaded at `address` at
  // `time_ns`, if there was one. The first kind of a module counts.
  void set_hook_kind(ProcessIndex process, uint64_t address, int64_t time_ns,
                     uint32_t kind);
  // Returns false if no module with this start is loaded, or was unloaded at that time or
  // later.
  bool end_module(ProcessIndex process, uint64_t start, int64_t time_ns);

 private:
  // The definitions of a process that are not in Process.
  struct Scope {
    absl::flat_hash_map<uint32_t, std::string> names;
    absl::flat_hash_map<uint32_t, EventLayout> layouts;
    // Modules that are loaded at this time of the building: start -> index.
    absl::btree_map<uint64_t, size_t> loaded;
    // The latest loading and unloading that were recorded, by start.
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

  // The text of any STRING, also that of the filter of calls.
  std::optional<std::string_view> text_of(ProcessIndex process, uint32_t id) const;
  const Module* own_module_at(ProcessIndex process, uint64_t address,
                              int64_t time_ns) const;
  void index_modules(ProcessIndex process) const;

  std::vector<Process> processes_;
  mutable std::vector<Scope> scopes_;  // by ProcessIndex
  std::vector<Thread> threads_;
  StoredSymbols symbols_;
  int64_t known_until_ns_ = INT64_MAX;
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
