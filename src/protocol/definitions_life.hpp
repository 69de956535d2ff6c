// Decides how long overwrite mode keeps a block of definitions: while its process lives,
// and while records that need it are in the buffer.
#pragma once

#include <arctrace/format.h>

#include <cstdint>

#include "src/buffer/buffer_view.hpp"
#include "src/protocol/block_state.hpp"
#include "src/protocol/recycle.hpp"

namespace arctrace {

template <class A>
class DefinitionsLife {
 public:
  // Whether a block of definitions is needed no more. REQUIRES: it was seen CLOSED.
  static bool is_over(const BufferView& view, arctrace_block_header& definitions) {
    const uint32_t process = A::load_relaxed(definitions.process);
    if (!is_gone(view, process)) return false;
    uint64_t retired = A::load_acquire(definitions.retired);
    if (retired == 0) {
      const uint64_t now = A::load_acquire(view.control().next);
      // If another writer stores its number first, that one is as good.
      if (A::compare_exchange_acq_rel(definitions.retired, retired, now)) retired = now;
    }
    return !has_records(view, process, retired);
  }

  // Whether there was a moment during this call at which the process had no thread. A
  // thread that attaches later and finds no older thread of its process writes the
  // definitions again.
  static bool is_gone(const BufferView& view, uint32_t process) {
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
      if (A::load_relaxed(slot.process) == process) return false;
    }
    // L3 acq_rel, adds 0: a thread that attaches after this sees what we saw, above all
    // the death of the last thread of its process.
    return A::fetch_add_acq_rel(control.writer_next, uint32_t{0}) == writers;
  }

  // Whether a thread of the process with a smaller identity than `writer` lives. If so,
  // the process has had a thread ever since that one attached.
  // `seen`: index of a slot that is looked at first; set to that of the thread found.
  static bool has_older_thread(const BufferView& view, uint32_t process, uint32_t writer,
                               uint32_t& seen) {
    const uint32_t used = Recycle<A>::slots_used(view);
    if (seen < used && is_older_thread(view.slot(seen), process, writer)) return true;
    for (uint32_t i = 0; i < used; ++i) {
      if (is_older_thread(view.slot(i), process, writer)) {
        seen = i;
        return true;
      }
    }
    return false;
  }

  // Whether definitions may take another block. In overwrite mode they get at most half
  // of the blocks, so that data always finds some; threads that ask at once may exceed
  // that.
  static bool have_room(const BufferView& view) {
    if (view.geometry().mode != ARCTRACE_MODE_OVERWRITE) return true;
    const uint32_t count = view.geometry().block_count;
    uint32_t room = count / 2;
    for (uint32_t i = 0; i < count; ++i) {
      arctrace_block_header& header = view.block_header(i);
      if (is_in_use(header) && is_definitions(header) && --room == 0) return false;
    }
    return true;
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

  // Whether any block may hold records of a process that was gone when control.next was
  // `retired`: an exclusive block of one of its threads, or a shared block handed out
  // before.
  static bool has_records(const BufferView& view, uint32_t process, uint64_t retired) {
    for (uint32_t i = 0; i < view.geometry().block_count; ++i) {
      arctrace_block_header& header = view.block_header(i);
      if (!is_in_use(header) || is_definitions(header)) continue;
      if (A::load_relaxed(header.form) == ARCTRACE_FORM_COMPACT
              ? A::load_relaxed(header.process) == process
              : A::load_relaxed(header.handout) < retired) {
        return true;
      }
    }
    return false;
  }
};

}  // namespace arctrace
