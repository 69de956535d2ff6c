// A buffer that is read as it is: the blocks in use, and what its slots, counters and
// control page say beside them.
#pragma once

#include <absl/status/statusor.h>
#include <arctrace/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "reader/trace/block_index.hpp"
#include "reader/trace/input.hpp"
#include "src/buffer/buffer_view.hpp"

namespace arctrace::reader {

// A buffer's slots and counters, as they were when it was opened.
struct BufferState {
  struct Slot {
    uint32_t index = 0, writer = 0, process = 0, pid = 0, tid = 0;
    bool alive = false;
    std::array<uint64_t, ARCTRACE_LOST_CAUSES> lost{}, reported{};
    uint32_t filtered_out = 0;  // of all its owners
    uint64_t written = 0;       // records of its owner
    uint64_t written_all = 0;   // and of earlier owners
  };
  std::array<uint64_t, 7> blocks_by_phase{};  // by enum arctrace_phase; [0]: invalid
  std::vector<Slot> slots;                    // those that were ever used
  struct CpuLoss {
    uint32_t cpu = 0;
    uint64_t since_monotonic_ns = 0;
  };
  std::vector<CpuLoss> cpu_losses;  // of the kernel's records that no LOST counts
  std::array<uint64_t, ARCTRACE_LOST_CAUSES> session_lost{};  // that no slot counted
  uint64_t filtered_out = 0;                                  // that no slot counts
  uint32_t gate = 0, collector_pid = 0;
  uint32_t processes = 0, threads = 0;  // identities ever given
  uint32_t high_water_blocks = 0;
  bool each_slot_has_one_owner = false;    // so far: its counts are of one owner
  std::vector<std::string> filter;         // the live one: globs after '+' or '-'
  std::vector<std::string> record_filter;  // as in SPEC.md FLT-2
  bool collector_alive = false;
  uint64_t pinned_bytes = 0;  // that a keeper has pinned, whether anybody collects
};

// What an input has of a session that is being recorded: which of the kernel's records
// are missing, as far as no record says so. Records of an earlier input are not missing.
struct LiveKernel {
  std::vector<BufferState::CpuLoss> cpu_losses;  // that go on
  bool has_writer = true;              // false: the recorder of the kernel's has ended
  uint64_t missed_ticks = UINT64_MAX;  // since when blocks may have been missed
};

// Finds the blocks in use of a buffer's image, and fills in `state`. Parts that cannot be
// a block or a slot lead to findings. Error: the input cannot be read.
absl::StatusOr<BlockIndex> index_buffer_untrusted(Input& input, const Geometry& geometry,
                                                  FindingLog& findings,
                                                  BufferState& state);

// Returns the control events that a buffer's control page still has: changes of the gate
// and executed programs, as the records that a recorder would have made of them (a buffer
// that is read as it is has no RECORDS chunks): the bytes of a RECORDS chunk's payload,
// of ENABLED and EXEC. Error: the input cannot be read.
absl::StatusOr<std::vector<std::byte>> records_of_control_events_untrusted(
    Input& input, const Geometry& geometry);

}  // namespace arctrace::reader
