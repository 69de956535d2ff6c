// Decides how long overwrite mode keeps a block of definitions: while its process lives,
// and while records that need it are in the buffer.
#pragma once

#include <arctrace/format.h>

#include <algorithm>
#include <cstdint>

#include "src/buffer/buffer_view.hpp"
#include "src/protocol/block_state.hpp"

namespace arctrace {

// Subtracts one search of all slots from those that one call may make. False: none is
// left.
inline bool take_search(uint32_t& searches) {
  if (searches == 0) return false;
  --searches;
  return true;
}

template <class A>
class DefinitionsLife {
 public:
  // Whether a block of definitions is needed no more, as far as this call checks: it
  // checks at most kBlockProbesMax blocks, and the next call checks those after them.
  // `searches`: as in Overwrite::take(). REQUIRES: the block was seen CLOSED.
  static bool is_over(const BufferView& view, arctrace_block_header& definitions,
                      uint32_t& searches) {
    uint64_t retired = A::load_acquire(definitions.retired);
    // Then the process writes all of the definitions again, or a later thread has done
    // so.
    if (retired == 0) {
      if (!is_of_gone(view, definitions, searches)) return false;
      const uint64_t now = A::load_acquire(view.control().next);
      // If another writer stores its number first, that number will do as well.
      if (A::compare_exchange_acq_rel(definitions.retired, retired, now)) retired = now;
    }
    return !has_records(view, definitions, retired);
  }

  // As is_gone(), for the process of a block of definitions: its header has a hint where
  // a thread of the process was seen.
  static bool is_of_gone(const BufferView& view, arctrace_block_header& definitions,
                         uint32_t& searches) {
    const uint32_t process = A::load_relaxed(definitions.process);
    const uint32_t hint = A::load_relaxed(definitions.living);
    if (hint != 0 && hint <= view.geometry().slot_count) {
      arctrace_writer_slot& slot = view.slot(hint - 1);
      const uint32_t lock = A::load_acquire(slot.lock);
      if (is_live(lock) && A::load_acquire(slot.tid) == (lock & kTidMask) &&
          A::load_relaxed(slot.process) == process) {
        return false;
      }
    }
    if (!take_search(searches)) return false;
    uint32_t living = 0;
    const bool is_gone_now = is_gone(view, process, living);
    if (living != 0) A::store_relaxed(definitions.living, living);
    return is_gone_now;
  }

  // Whether the process had no thread at some time during this call. A thread that
  // attaches later and finds no older thread of its process writes the definitions again.
  static bool is_gone(const BufferView& view, uint32_t process) {
    uint32_t living = 0;
    return is_gone(view, process, living);
  }
  // `living` is set to the number of the slot of a living thread of the process, counted
  // from 1.
  static bool is_gone(const BufferView& view, uint32_t process, uint32_t& living) {
    arctrace_control& control = view.control();
    // L1 acquire, matches L2 in attach: a thread that is counted here has locked its
    // slot.
    const uint32_t writers = A::load_acquire(control.writer_next);
    const uint32_t used = Recycle<A>::slots_used(view);
    for (uint32_t i = 0; i < used; ++i) {
      arctrace_writer_slot& slot = view.slot(i);
      const uint32_t lock = A::load_acquire(slot.lock);
      if (!is_live(lock)) continue;
      // M2 acquire, matches M1 in attach. With another tid, the new owner has not stored
      // its identity yet.
      if (A::load_acquire(slot.tid) != (lock & kTidMask)) return false;
      if (A::load_relaxed(slot.process) == process) {
        living = i + 1;
        return false;
      }
    }
    // L3 acq_rel, adds 0: a thread that attaches after this sees what we saw, above all
    // the death of the last thread of its process.
    return A::fetch_add_acq_rel(control.writer_next, uint32_t{0}) == writers;
  }

  // Whether a thread of the process with a smaller identity than `writer` lives. If so,
  // the process has had a thread ever since `writer` attached. `seen`: number, from 1, of
  // a slot that is checked first; set to that of the thread found.
  static bool has_older_thread(const BufferView& view, uint32_t process, uint32_t writer,
                               uint32_t& seen) {
    const uint32_t used = Recycle<A>::slots_used(view);
    if (seen - 1 < used && is_older_thread(view.slot(seen - 1), process, writer)) {
      return true;
    }
    for (uint32_t i = 0; i < used; ++i) {
      if (is_older_thread(view.slot(i), process, writer)) {
        seen = i + 1;
        return true;
      }
    }
    return false;
  }

  // Whether definitions may take another block. In overwrite mode they get at most half
  // of the blocks, so that data always finds some; threads that ask at once may exceed
  // that.
  static bool have_space(const BufferView& view) {
    if (view.geometry().mode != ARCTRACE_MODE_OVERWRITE) return true;
    const uint64_t used = A::load_relaxed(view.control().definition_blocks);
    // Deaths have brought the count below 0.
    if (static_cast<int64_t>(used) < 0) return true;
    return used < view.geometry().block_count / 2;
  }

  // The searches of all slots that one call may make.
  static uint32_t searches(const BufferView& view) {
    constexpr uint32_t kSlotProbesMax = 16384;
    constexpr uint32_t kMin = 4;
    return std::max(kMin, kSlotProbesMax / std::max(Recycle<A>::slots_used(view), 1u));
  }

  // The value of `checked` in a block that is opened: none, and bits of its generation,
  // so that a writer that stopped in the midst of a search does not store into a later
  // one.
  static uint32_t unchecked(uint32_t generation) { return generation << 24; }

  // Counts a block that has got its header, if it is of definitions.
  static void count_opened(const BufferView& view, uint16_t block_class) {
    if (block_class != ARCTRACE_CLASS_DEFINITIONS ||
        view.geometry().mode != ARCTRACE_MODE_OVERWRITE) {
      return;
    }
    A::fetch_add_relaxed(view.control().definition_blocks, uint64_t{1});
  }

  // Subtracts a block that is about to be wiped from the count. If the writer dies here,
  // another one takes the block and subtracts it again: then the count is too small, and
  // definitions may have a block more.
  static void count_reset(const BufferView& view, arctrace_block_header& header) {
    if (!is_in_use(header) || !is_definitions(header)) return;
    A::fetch_add_relaxed(view.control().definition_blocks, ~uint64_t{0});
  }

  static bool is_definitions(arctrace_block_header& header) {
    return A::load_relaxed(header.block_class) == ARCTRACE_CLASS_DEFINITIONS;
  }

 private:
  static bool is_older_thread(arctrace_writer_slot& slot, uint32_t process,
                              uint32_t writer) {
    const uint32_t lock = A::load_acquire(slot.lock);
    return is_live(lock) && A::load_acquire(slot.tid) == (lock & kTidMask) &&
           A::load_relaxed(slot.process) == process &&
           A::load_relaxed(slot.writer) < writer;
  }

  static bool is_in_use(arctrace_block_header& header) {
    // C2 acquire, matches C1.
    return A::load_acquire(header.magic) == ARCTRACE_BLOCK_MAGIC;
  }

  // Whether the block is being opened, so that it is not known yet what will be in it.
  static bool is_being_opened(arctrace_block_header& header) {
    const uint32_t phase = BlockState::unpack(A::load_acquire(header.state)).phase;
    return phase == ARCTRACE_PHASE_OWNED || phase == ARCTRACE_PHASE_RESETTING;
  }

  static constexpr uint32_t kBlockProbesMax = 256;
  static constexpr uint32_t kCheckedMask = ARCTRACE_BLOCK_COUNT_MAX - 1;

  // Whether any block may have records that were made before control.next was `retired`,
  // and need these definitions: an exclusive block of a thread of their process, or a
  // shared block, handed out before. A block that has none will never have one again, so
  // that a search may go on where the last one stopped. True also if this call has not
  // searched at all.
  static bool has_records(const BufferView& view, arctrace_block_header& definitions,
                          uint64_t retired) {
    const uint32_t process = A::load_relaxed(definitions.process);
    const uint32_t count = view.geometry().block_count;
    uint32_t seen = A::load_relaxed(definitions.checked);
    uint32_t i = seen & kCheckedMask;
    const uint32_t end = i < count ? i + std::min(kBlockProbesMax, count - i) : i;
    for (; i < end; ++i) {
      arctrace_block_header& header = view.block_header(i);
      if (!is_in_use(header)) {
        if (is_being_opened(header)) break;
        continue;
      }
      if (is_definitions(header) || A::load_relaxed(header.handout) >= retired) continue;
      if (!is_exclusive_form(A::load_relaxed(header.form)) ||
          A::load_relaxed(header.process) == process) {
        break;
      }
    }
    if (i >= count) return false;
    A::compare_exchange_acq_rel(definitions.checked, seen, (seen & ~kCheckedMask) | i);
    return true;
  }
};

}  // namespace arctrace
