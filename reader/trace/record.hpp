// What the stages of the reader exchange: records in order of time, and the definitions
// that give them meaning. Nothing here points into shared memory.
#pragma once

#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace arctrace::reader {

// Dense indices into Definitions; kNoIndex: unknown.
using ThreadIndex = uint32_t;
using ProcessIndex = uint32_t;
inline constexpr uint32_t kNoIndex = UINT32_MAX;

// One committed record. `body` is what follows the head. It is valid during the call that
// hands the record out, and its size has been checked (body_check.hpp).
struct Record {
  uint64_t ticks;
  int64_t time_ns;  // since the session's start
  ThreadIndex thread;
  uint16_t type;  // enum arctrace_record_type
  bool compact;   // it stands in an exclusive block
  // It is the thread's first record after a gap in the serials of its blocks (overwritten
  // or lost ones): the thread's stack is not known until the next STACK. An EXIT that
  // says so leaves a call whose ENTER was overwritten.
  bool after_gap;
  // It is the thread's first record after others that the reader of a range passed over:
  // its stack is the one that the next STACK gives.
  bool after_skip;
  std::span<const std::byte> body;
  uint64_t chunk;   // the sequence of its chunk, or in a buffer the index of its block
  uint32_t offset;  // in bytes, in that chunk or block
};

struct Module {
  uint64_t start = 0, end = 0, bias = 0;  // addresses; file address = address - bias
  int64_t loaded_ns = INT64_MIN, unloaded_ns = INT64_MAX;
  uint32_t flags = 0;  // ARCTRACE_MODULE_*
  // Of its functions with compiled-in hooks, if it is a kind of its own (enum
  // arctrace_hook_kind): from HOOKED; 0: none.
  uint32_t hook_kind = 0;
  std::string path;
  std::vector<std::byte> build_id;
};

// Code that a process generated and named.
struct Code {
  uint64_t start = 0, end = 0;  // addresses
  int64_t since_ns = 0;         // when it was put there
  std::string name;
};

// A file that named a process' generated code.
struct CodeFile {
  uint32_t kind = 0;                 // enum arctrace_code_file_kind
  uint64_t names = 0, left_out = 0;  // CODE records, and names without one
  bool is_cut = false;               // the file is longer than what was read
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

struct Process {
  uint32_t id = 0, parent_id = 0;  // session identities
  uint32_t pid = 0, ppid = 0, uid = 0;
  // enum arctrace_process_origin; 0: the trace has no PROCESS of it, at most its pid
  // (else 0) and start.
  uint32_t origin = 0;
  uint32_t forker = 0;  // session identity of the thread that forked it; 0: not known
  uint32_t pid_namespace = 0;  // whose numbers pid and ppid are: an inode; 0: the first
  int64_t start_ns = 0;
  int64_t forked_ns = INT64_MIN;  // when its parent called fork; INT64_MIN: not known
  int64_t end_ns = INT64_MAX;
  // When it executed its program; of a process that has no such record, INT64_MIN. When
  // main was called, and has returned: INT64_MAX if that is not recorded.
  int64_t exec_ns = INT64_MIN;
  uint64_t exec_within_ns = 0;  // it may have been that much later
  int64_t main_ns = INT64_MAX, exit_ns = INT64_MAX;
  // Without exec_ns: the earliest time at which it may have begun; INT64_MIN: not known.
  int64_t earliest_ns = INT64_MIN;
  bool ran_before = false;  // it has joined as it ran, at start_ns
  // Of a forked process: the frames that its forker had open, outermost first; 0 stands
  // for all further out.
  std::optional<std::vector<uint64_t>> inherited;
  bool is_patched = false;     // functions without a compiled-in hook were
  std::set<uint32_t> helpers;  // its children that are a tracer's own, by pid
  // Of the patched functions, those whose calls filled the buffer: their addresses, and
  // when they were switched off.
  std::map<uint64_t, int64_t> switched_off;
  bool has_hook_kinds = false;  // some of its modules have a hook_kind
  uint32_t end_how = 0;         // enum arctrace_process_end; 0: none recorded
  int32_t end_status = -1;
  // Of one that did not record its end, such as by a signal: when the collector saw the
  // last of its threads end; INT64_MAX: they had not.
  int64_t died_ns = INT64_MAX;
  std::optional<int32_t> wait_status;  // of the recorder's command
  uint32_t end_writer = 0;  // the thread that ended it, by its session identity
  std::string executable;
  std::vector<std::string> arguments;
  std::vector<Module> modules;
  std::vector<Code> code;  // in the order of the records
  std::vector<CodeFile> code_files;

  // When it ended, as far as that was recorded or seen; INT64_MAX: neither.
  int64_t ended_ns() const { return end_ns != INT64_MAX ? end_ns : died_ns; }

  // When it executed its program, or was forked; if that is not recorded, when it joined.
  int64_t begin_ns() const {
    if (exec_ns != INT64_MIN) return exec_ns;
    return forked_ns != INT64_MIN ? forked_ns : start_ns;
  }
};

struct ThreadName {
  int64_t since_ns;
  std::string name;
};

// An open call that its thread had not reported when it ended, or when the recording did.
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
  // If of_kernel(): its process is not recorded, and what others do with it is all that
  // is known.
  bool is_foreign = false;
  // If of_kernel(): its process is recorded. It is replayed while no thread that has
  // written records has its number. If none ever has, and it is not the first thread of
  // a process that has written some, `process` is that process, or one of which only the
  // kernel's records tell; else kNoIndex.
  bool is_silent = false;
  // If it is none, but stands for the interrupts that this CPU served (SPEC.md READ-12).
  std::optional<uint32_t> interrupts_of;
  int64_t start_ns = 0;
  int64_t end_ns = INT64_MAX;    // when the collector saw that it was gone
  int64_t alive_ns = INT64_MIN;  // when it last knew that the thread lived
  // It is gone and no collector saw when, or another file has what it did next: all that
  // is known is its last record.
  bool ended_unseen = false;
  // Its records before this time were overwritten; INT64_MIN: none, or that is not known
  // before they are read.
  int64_t overwritten_until_ns = INT64_MIN;
  std::vector<ThreadName> names;
  // Outermost first; later than all that the thread has reported.
  std::vector<WaitingCall> waiting;
  uint64_t waiting_since_written = 0;  // user records that it had written then
  int64_t waiting_min_ns = 0;          // shorter calls are not reported

  // Whether only the kernel's records name it: it has written none itself.
  bool of_kernel() const { return (writer & ARCTRACE_WRITER_KERNEL) != 0; }
};

// A CPU of which the kernel's records before this time may have been overwritten.
struct CpuBegin {
  uint32_t cpu;
  int64_t first_ns;
};

// A breach of a validity rule of SPEC.md.
struct Finding {
  std::string rule;  // "R3"
  std::string message;
  uint64_t chunk = 0;  // as in Record
  uint32_t offset = 0;
};

// Returns false to stop the reading.
using RecordSink = std::function<bool(const Record&)>;

}  // namespace arctrace::reader
