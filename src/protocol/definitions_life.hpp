// How long overwrite mode keeps a block of definitions: while its process lives, and
// while records are left that need it.
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
      // Who is beaten by another writer finds the other's number, which does as well.
      if (A::compare_exchange_acq_rel(definitions.retired, retired, now)) retired = now;
    }
    return !has_records(view, process, retired);
  }

  // Whether there was a moment during this call at which the process had no thread. Who
  // attaches later, finding no older thread of the process, writes its definitions anew.
  static bool is_gone(const BufferView& view, uint32_t process) {
    arctrace_control& control = view.control();
    // L1 acquire, matches L2 in attach: who is counted here has locked its slot.
    const uint32_t writers = A::load_acquire(control.writer_next);
    const uint32_t used = Recycle<A>::slots_used(view);
    for (uint32_t i = 0; i < used; ++i) {
      arctrace_writer_slot& slot = view.slot(i);
      const uint32_t lock = A::load_acquire(slot.lock);
      if (!is_live(lock)) continue;
      // M2 acquire, matches M1 in attach. Another tid: the owner is about to say who he
      // is.
      if (A::load_acquire(slot.tid) != (lock & kTidMask)) return false;
      if (A::load_relaxed(slot.process) == process) return false;
    }
    // L3 acq_rel, adds nothing: who attaches from here on sees what we saw, above all the
    // death of the thread that handed on to him.
    return A::fetch_add_acq_rel(control.writer_next, uint32_t{0}) == writers;
  }

  // Whether a thread of the process with a smaller identity than `writer` lives: then the
  // process has had a thread ever since that one attached.
  static bool has_older_thread(const BufferView& view, uint32_t process,
                               uint32_t writer) {
    const uint32_t used = Recycle<A>::slots_used(view);
    for (uint32_t i = 0; i < used; ++i) {
      arctrace_writer_slot& slot = view.slot(i);
      const uint32_t lock = A::load_acquire(slot.lock);
      if (is_live(lock) && A::load_acquire(slot.tid) == (lock & kTidMask) &&
          A::load_relaxed(slot.process) == process &&
          A::load_relaxed(slot.writer) < writer) {
        return true;
      }
    }
    return false;
  }

  // In overwrite mode definitions get half of the blocks at most, so that the ring of
  // data goes on, to within those who ask at once.
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
  static bool is_in_use(arctrace_block_header& header) {
    // C2 acquire, matches C1.
    return A::load_acquire(header.magic) == ARCTRACE_BLOCK_MAGIC;
  }

  // Whether a block may hold records of a process that was gone when control.next was
  // `retired`: exclusive blocks of its threads, shared ones handed out before.
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
