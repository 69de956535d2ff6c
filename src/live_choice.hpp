// The choice of functions in the control page (SPEC.md 1.2): written by `arctrace ctl`,
// copied by the programs of the session.
#pragma once

#include <arctrace/format.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "src/buffer_view.hpp"
#include "src/shared_atomics.hpp"

namespace arctrace {

struct ChoiceArea {
  static constexpr uint64_t kOffset = ARCTRACE_CONTROL_OFFSET + sizeof(arctrace_control);
  static constexpr uint32_t kTextMax = 1024;
  static constexpr uint32_t kWords = kTextMax / sizeof(uint64_t);
  static constexpr char kTrace = '+';     // only what matches, and what that calls
  static constexpr char kLeaveOut = '-';  // not what matches, nor what that calls

  uint32_t round;  // rises with each choice, odd while it is being changed; 0: none yet
  uint32_t size;   // bytes of text that count; 0: as programs were started
  uint32_t reserved[14];
  // Each a mark and a glob of linker's names, ended by a zero byte.
  uint64_t text[kWords];
};
static_assert(offsetof(ChoiceArea, text) == 64);
static_assert(ChoiceArea::kOffset + sizeof(ChoiceArea) <= ARCTRACE_CPUS_OFFSET);

inline ChoiceArea& choice_area(const BufferView& view) {
  return *reinterpret_cast<ChoiceArea*>(view.base() + ChoiceArea::kOffset);
}

// Copies the text to `to` (kWords); returns its size. Negative: it is being changed.
inline int64_t copy_choice_untrusted(ChoiceArea& area, uint64_t* to, uint32_t& round) {
  round = IpcAtomics::load_acquire(area.round);  // Q2
  if (round % 2 != 0) return -1;
  const uint32_t size = IpcAtomics::load_relaxed(area.size);
  if (size > ChoiceArea::kTextMax) return 0;
  for (uint32_t i = 0; i < ChoiceArea::kWords; ++i) {
    to[i] = IpcAtomics::load_relaxed(area.text[i]);
  }
  std::atomic_thread_fence(std::memory_order_acquire);  // Q3
  return IpcAtomics::load_relaxed(area.round) == round ? int64_t{size} : -1;
}

// `text`: kWords, of which `size` bytes count. False: somebody else wrote one at the same
// time.
inline bool publish_choice(ChoiceArea& area, const uint64_t* text, uint32_t size) {
  uint32_t round = IpcAtomics::load_relaxed(area.round);
  // Odd already: whoever was at it died, or is about to notice.
  const uint32_t changing = (round + 1) | 1;
  if (!IpcAtomics::compare_exchange_acq_rel(area.round, round, changing)) return false;
  std::atomic_thread_fence(std::memory_order_release);  // Q4
  IpcAtomics::store_relaxed(area.size, size);
  for (uint32_t i = 0; i < ChoiceArea::kWords; ++i) {
    IpcAtomics::store_relaxed(area.text[i], text[i]);
  }
  uint32_t expected = changing;
  const uint32_t next = changing + 1 == 0 ? 2 : changing + 1;
  return IpcAtomics::compare_exchange_acq_rel(area.round, expected, next);  // Q1
}

}  // namespace arctrace
