// Hands out blocks to writers, FREE -> OWNED -> CLOSED, and writes the header of an
// opened block. In overwrite mode the oldest closed block serves as well as a free one
// (overwrite.hpp).
#pragma once

#include <arctrace/format.h>

#include <cstdint>
#include <optional>

#include "src/buffer/buffer_view.hpp"
#include "src/protocol/block_state.hpp"
#include "src/protocol/overwrite.hpp"

namespace arctrace {

// What the opener writes into a block's header.
struct BlockIdentity {
  arctrace_block_form form;
  arctrace_block_class block_class;
  uint32_t writer;
  uint32_t process;
  uint32_t pid;
  uint32_t tid;
  uint64_t serial;
  uint64_t base_ticks;
};

template <class A>
class Handout {
 public:
  struct Taken {
    uint32_t index;
    uint64_t handout;
    uint64_t state;  // as stored: OWNED
  };

  // Takes a free block for the holder of slot `slot`, or in overwrite mode the next one
  // that may be overwritten; nullopt if none of all blocks will do. `name` is the word of
  // that slot (current or active[]) that names the block. It is set before the block is
  // taken, so that the block is found if the holder dies at any point.
  static std::optional<Taken> take(const BufferView& view, uint32_t slot,
                                   uint32_t& name) {
    arctrace_control& control = view.control();
    const uint32_t count = view.geometry().block_count;
    const bool overwrites = view.geometry().mode == ARCTRACE_MODE_OVERWRITE;
    for (uint32_t tries = 0; tries < count; ++tries) {
      const uint64_t handout = A::fetch_add_relaxed(control.next, uint64_t{1});
      const auto index = static_cast<uint32_t>(handout % count);
      arctrace_block_header& header = view.block_header(index);
      // A1 acquire: the refill that preceded FREE is visible before we write over it.
      uint64_t seen = A::load_acquire(header.state);
      const BlockState state = BlockState::unpack(seen);
      if (state.phase != ARCTRACE_PHASE_FREE) {
        if (!overwrites) continue;
        if (const uint64_t owned = Overwrite<A>::take(view, slot, name, index)) {
          A::fetch_add_relaxed(control.taken, uint64_t{1});
          return Taken{index, handout, owned};
        }
        continue;
      }
      // B1 release: a process that sees OWNED by this slot also sees the name.
      A::store_release(name, index + 1);
      const uint64_t owned =
          BlockState{state.generation, slot, ARCTRACE_PHASE_OWNED}.pack();
      if (A::compare_exchange_acq_rel(header.state, seen, owned)) {
        A::fetch_add_relaxed(control.taken, uint64_t{1});
        return Taken{index, handout, owned};
      }
    }
    A::store_release(name, uint32_t{0});
    return std::nullopt;
  }

  // Writes the header of a block that we own, its magic last, because a block without the
  // magic holds no records.
  static void open(const BufferView& view, const Taken& taken, const BlockIdentity& id) {
    arctrace_block_header& h = view.block_header(taken.index);
    h.form = static_cast<uint16_t>(id.form);
    h.block_class = static_cast<uint16_t>(id.block_class);
    h.writer = id.writer;
    h.process = id.process;
    h.pid = id.pid;
    h.tid = id.tid;
    h.serial = id.serial;
    h.handout = taken.handout;
    h.base_ticks = id.base_ticks;
    h.retired = 0;
    h.reserved1 = 0;
    // C1 release: a reader that sees the magic sees the identity.
    A::store_release(h.magic, uint32_t{ARCTRACE_BLOCK_MAGIC});
  }

  // OWNED -> CLOSED by the owner. D1 release: every record of the block is visible to a
  // process that acquires CLOSED.
  static void close(const BufferView& view, const Taken& taken) {
    const BlockState owned = BlockState::unpack(taken.state);
    change(view, taken, owned.with(ARCTRACE_PHASE_CLOSED));
    count_closed<A>(view);
  }

  // OWNED -> FREE by the owner, which has not even written the header. The generation
  // distinguishes the state from that of a later owner with the same slot.
  static void give_back(const BufferView& view, const Taken& taken) {
    const BlockState owned = BlockState::unpack(taken.state);
    change(view, taken, {owned.generation + 1, 0, ARCTRACE_PHASE_FREE});
    A::fetch_add_relaxed(view.control().freed, uint64_t{1});
  }

 private:
  // Fails only if the state word is damaged; then the block is lost, and nothing else.
  static void change(const BufferView& view, const Taken& taken, BlockState to) {
    uint64_t expected = taken.state;
    A::compare_exchange_acq_rel(view.block_header(taken.index).state, expected,
                                to.pack());
  }
};

}  // namespace arctrace
