// The facts about a recorded session that hold for the whole trace.
#pragma once

#include <arctrace/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace arctrace::reader {

// Which files of a recording that was cut into files are read, by FILES records.
struct RecordingFiles {
  size_t given = 1;              // how many are read
  uint32_t first = 0, last = 0;  // their numbers, from 1; 0: the recording is one file
  uint64_t removed = 0;          // how many the recorder has removed, as far as they say
  bool goes_on = false;          // another file follows the last one
};

// A session's header, and what the collector's SYSTEM, SESSION and CHILD_STATUS records
// add to it.
struct Session {
  std::string path;
  uint64_t size_bytes = 0;
  bool raw = false;  // a buffer's image, not a trace file
  uint16_t version_major = 0, version_minor = 0;
  uint32_t mode = 0;   // enum arctrace_mode
  uint32_t scope = 0;  // enum arctrace_scope
  uint32_t clock = 0;  // enum arctrace_clock
  uint32_t block_size = 0, block_count = 0, slot_count = 0, cpu_count = 0;
  uint64_t buffer_size = 0;
  uint32_t creator_pid = 0, creator_uid = 0;
  uint64_t pinned_bytes = 0;      // of the buffer, from its beginning
  bool has_checksums = false;     // each chunk of the file has one
  uint64_t index_offset = 0;      // of the file: where its INDEX is; 0: there is none
  bool has_perf_records = false;  // the kernel's are from perf events: no wake-ups
  uint64_t ticks_per_second = 0, start_ticks = 0;
  uint64_t start_monotonic_ns = 0, start_realtime_ns = 0;
  std::array<uint8_t, 16> id{};
  // From SYSTEM; empty or 0 if there is none.
  std::string host, kernel;
  std::vector<std::string> recorder_command;
  uint32_t page_size = 0, cpus_online = 0;
  // From HOOK_COSTS: one of each kind that is known.
  std::vector<arctrace_hook_cost> hook_costs;
  // From SESSION and CHILD_STATUS.
  bool finished = false;              // false: cut off, or a raw buffer
  bool resumed = false;               // earlier records may be in another file
  bool may_lack_definitions = false;  // they are in another file, or there was no room
  int32_t disk_full_errno = 0;
  std::optional<int32_t> child_wait_status;
  RecordingFiles files;
  // Identities ever given, as COUNTS or a buffer have it; 0: not known.
  uint32_t processes = 0, threads = 0;
};

}  // namespace arctrace::reader
