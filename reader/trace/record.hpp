// What the reading stages hand to each other: decoded records in time order, and the
// definitions that give them meaning. Nothing here points into shared memory.
#pragma once

#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace arctrace::reader {

// Dense indices into Definitions; kNoIndex: unknown.
using ThreadIndex = uint32_t;
using ProcessIndex = uint32_t;
inline constexpr uint32_t kNoIndex = UINT32_MAX;

// One committed record. `body` is what stands behind the head, valid during the call
// that hands it out, and already checked to be long enough for its type's fixed part
// and for the counts and sizes that the fixed part names.
struct Record {
  uint64_t ticks;
  int64_t time_ns;  // since the session's start
  ThreadIndex thread;
  uint16_t type;  // enum arctrace_record_type
  bool compact;   // from an exclusive block
  // This is the first record of a thread after a gap in its blocks' serials
  // (overwritten or lost blocks): its stack is unknown until the next STACK.
  bool after_gap;
  std::span<const std::byte> body;
  uint64_t chunk;   // where it stands: chunk sequence (or block index) ...
  uint32_t offset;  // ... and byte offset in that block
};

struct Module {
  uint64_t start = 0, end = 0, bias = 0;  // addresses; file address = address - bias
  int64_t loaded_ns = INT64_MIN, unloaded_ns = INT64_MAX;
  uint32_t flags = 0;  // ARCTRACE_MODULE_*
  std::string path;
  std::vector<std::byte> build_id;
};

// Code that a process generated and named.
struct Code {
  uint64_t start = 0, end = 0;  // addresses
  int64_t since_ns = 0;         // from when on it stood there
  std::string name;
};

// A file that named a process' generated code.
struct CodeFile {
  uint32_t kind = 0;  // enum arctrace_code_file_kind
  uint64_t names = 0, left_out = 0;
  bool is_cut = false;  // there was more than was read
  std::string path;     // as the process saw it
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
  uint32_t origin = 0;         // enum arctrace_process_origin
  uint32_t pid_namespace = 0;  // inode of that whose numbers these are; 0: the first
  int64_t start_ns = 0;
  int64_t end_ns = INT64_MAX;
  uint32_t end_how = 0;  // enum arctrace_process_end; 0: none recorded
  int32_t end_status = -1;
  std::string executable;
  std::vector<std::string> arguments;
  std::vector<Module> modules;
  std::vector<Code> code;  // in the order in which it was told
  std::vector<CodeFile> code_files;
};

struct ThreadName {
  int64_t since_ns;
  std::string name;
};

struct Thread {
  uint32_t writer = 0;  // session identity
  ProcessIndex process = kNoIndex;
  uint32_t tid = 0;
  uint32_t tgid = 0;  // of_kernel(): its process' number, which has no index
  int64_t start_ns = 0;
  int64_t end_ns = INT64_MAX;  // when the collector saw it gone
  std::vector<ThreadName> names;

  // One that the kernel's records name, which holds none of its own.
  bool of_kernel() const { return (writer & ARCTRACE_WRITER_KERNEL) != 0; }
};

// A SPEC.md rule that the input breaks.
struct Finding {
  std::string rule;  // "R12"
  std::string message;
  uint64_t chunk = 0;
  uint32_t offset = 0;
};

// Returns false to stop the reading.
using RecordSink = std::function<bool(const Record&)>;

}  // namespace arctrace::reader
