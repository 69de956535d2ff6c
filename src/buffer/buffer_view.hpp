// A mapped buffer: the sizes and offsets in it, a view of it, and the word on which its
// collector sleeps.
#pragma once

#include <arctrace/format.h>
#include <linux/futex.h>

#include <cstddef>
#include <cstdint>
#include <ctime>

#include "src/base/raw_syscall.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/buffer/clock.hpp"

namespace arctrace {

// Sizes and offsets of one buffer in private memory. The creator computes them; all
// others copy them once from the untrusted session header and check them.
struct Geometry {
  uint32_t slot_count = 0;
  uint32_t cpu_count = 0;
  uint32_t block_size = 0;  // bytes, header included
  uint32_t block_count = 0;
  uint64_t slots_offset = 0;  // bytes from the buffer's start
  uint64_t blocks_offset = 0;
  uint64_t total_size = 0;
  uint32_t mode = ARCTRACE_MODE_DROP;
  uint32_t scope = ARCTRACE_SCOPE_THREAD;
  uint32_t clock = ARCTRACE_CLOCK_MONOTONIC;
  uint32_t stamps = ARCTRACE_STAMPS_EXACT;

  // Whether programs take the times of records from the clock word.
  bool has_clock_word() const { return stamps != ARCTRACE_STAMPS_EXACT; }
};

// Whether blocks of this form (enum arctrace_block_form) are one writer's.
inline bool is_exclusive_form(uint16_t form) { return form != ARCTRACE_FORM_FULL; }

// The size of a record's head in blocks of this form, in bytes.
inline uint32_t head_size(uint16_t form) {
  if (form == ARCTRACE_FORM_FULL) return ARCTRACE_FULL_HEAD_SIZE;
  return form == ARCTRACE_FORM_BARE ? ARCTRACE_BARE_HEAD_SIZE
                                    : ARCTRACE_COMPACT_HEAD_SIZE;
}

enum class GeometryError : uint8_t {
  kNone,
  kMagic,       // not an arctrace buffer
  kVersion,     // another major version, or an unknown required feature
  kByteOrder,   // made on a machine of another byte order
  kBlockSize,   // out of range, or not a multiple of 64
  kBlockCount,  // none, or too many
  kSlotCount,
  kCpuCount,
  kEnum,    // unknown mode, scope or clock
  kLayout,  // offsets or sizes do not fit together
  kSize,    // larger than the mapping
};

// Checks the counts and fills in the offsets and the total size.
GeometryError layout_geometry(Geometry& geometry);

// Reads the geometry out of a private copy of a header that another process wrote.
// `available`: how many bytes of the buffer exist.
GeometryError read_geometry_untrusted(const arctrace_session_header& header,
                                      uint64_t expected_magic, uint64_t available,
                                      Geometry& out);

// A sentence without full stop for each error.
const char* describe(GeometryError error);

// The longest record that a block can hold, in bytes.
inline uint32_t record_length_max(const Geometry& geometry) {
  const uint32_t space = geometry.block_size - ARCTRACE_BLOCK_HEADER_SIZE;
  return space < ARCTRACE_RECORD_LENGTH_MAX ? space : ARCTRACE_RECORD_LENGTH_MAX;
}

// A mapped buffer and the private copy of its geometry, which bounds every index into it.
// It owns nothing; writers, recorder and readers pass it by value.
class BufferView {
 public:
  constexpr BufferView() = default;
  BufferView(std::byte* base, const Geometry& geometry)
      : base_(base), geometry_(geometry) {}

  const Geometry& geometry() const { return geometry_; }
  std::byte* base() const { return base_; }

  arctrace_control& control() const {
    return *reinterpret_cast<arctrace_control*>(base_ + ARCTRACE_CONTROL_OFFSET);
  }
  // REQUIRES: cpu < geometry().cpu_count.
  arctrace_cpu_slot& cpu_slot(uint32_t cpu) const {
    return *reinterpret_cast<arctrace_cpu_slot*>(
        base_ + ARCTRACE_CPUS_OFFSET + uint64_t{cpu} * sizeof(arctrace_cpu_slot));
  }
  // REQUIRES: index < geometry().slot_count.
  arctrace_writer_slot& slot(uint32_t index) const {
    return *reinterpret_cast<arctrace_writer_slot*>(base_ + geometry_.slots_offset +
                                                    uint64_t{index} * ARCTRACE_SLOT_SIZE);
  }
  // REQUIRES: index < geometry().block_count.
  std::byte* block(uint32_t index) const {
    return base_ + geometry_.blocks_offset + uint64_t{index} * geometry_.block_size;
  }
  arctrace_block_header& block_header(uint32_t index) const {
    return *reinterpret_cast<arctrace_block_header*>(block(index));
  }

 private:
  std::byte* base_ = nullptr;
  Geometry geometry_;
};

// The time that a record has which is begun now, in the session's ticks.
inline uint64_t read_ticks(const BufferView& view) {
  const Geometry& geometry = view.geometry();
  if (!geometry.has_clock_word()) return read_ticks(geometry.clock);
  // Relaxed: the word alone is read (SPEC.md CLK-2).
  return IpcAtomics::load_relaxed(view.control().time);
}

// Wakes the collector. The futex word on which it sleeps is 0 while it sleeps or works, 1
// from a wake-up until its next pass begins: a thread that finds the word 1 need not make
// the system call again.
inline void wake_collector(arctrace_control& control) {
  // O1 release, matches O2: the stores that the collector is to see.
  if (IpcAtomics::exchange_acq_rel(control.wake, uint32_t{1}) == 0) {
    raw_syscall(SYS_futex, sys::pointer_argument(&control.wake), FUTEX_WAKE, 1);
  }
}

// Waits until wake_collector() is called or `nanoseconds`, less than a second, have
// passed. Returns what the system call did: -EFAULT if the kernel cannot wait on this
// memory.
inline long wait_for_wake(arctrace_control& control, long nanoseconds) {
  const timespec timeout{0, nanoseconds};
  const long result = raw_syscall(SYS_futex, sys::pointer_argument(&control.wake),
                                  FUTEX_WAIT, 0, sys::pointer_argument(&timeout));
  // O2 acquire, matches O1.
  IpcAtomics::exchange_acq_rel(control.wake, uint32_t{0});
  return result;
}

}  // namespace arctrace
