// Hands out blocks to writers, FREE -> OWNED -> CLOSED, and writes the header of an
// opened block. In overwrite mode the oldest closed block serves as well as a free one
// (overwrite.hpp).
#pragma once

#include <arctrace/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "src/base/shared_atomics.hpp"
#include "src/buffer/buffer_view.hpp"
#include "src/protocol/block_state.hpp"
#include "src/protocol/overwrite.hpp"

namespace arctrace {

// The values that the opener writes into a block's header.
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

  // The number of blocks that may be in use before the rest is reserved for definitions
  // (SPEC.md WRT-10); above the number of blocks: none is reserved.
  static uint32_t most_for_data(const Geometry& geometry) {
    // In overwrite mode definitions may overwrite data.
    constexpr uint32_t kPart = 16, kFewBlocks = 64;
    const bool keeps_none =
        geometry.block_count < kFewBlocks || geometry.mode == ARCTRACE_MODE_OVERWRITE;
    return keeps_none ? UINT32_MAX : geometry.block_count - geometry.block_count / kPart;
  }

  // Whether the blocks that are free are reserved for definitions: records of class data
  // get none of them.
  static bool rest_is_for_definitions(const BufferView& view) {
    return blocks_in_use<A>(view.control()) >= most_for_data(view.geometry());
  }

  // The number of blocks that one call checks, at most. In overwrite mode there is no
  // collector that says which blocks are long in use.
  static constexpr uint32_t kProbesMax = 256;
  static constexpr uint32_t kProbesMaxOverwriting = 4096;

  // Takes a free block for the holder of slot `slot`, or in overwrite mode the next one
  // that may be overwritten; nullopt if none of those that it checks will do. `name` is
  // the word of that slot (current or active[]) that names the block. It is set before
  // the block is taken, so that the block is found if the holder dies at any point.
  static std::optional<Taken> take(const BufferView& view, uint32_t slot,
                                   uint32_t& name) {
    arctrace_control& control = view.control();
    const uint32_t count = view.geometry().block_count;
    const bool overwrites = view.geometry().mode == ARCTRACE_MODE_OVERWRITE;
    uint32_t most = probes(view, count);
    uint32_t searches = overwrites ? DefinitionsLife<A>::searches(view) : 0;
    uint64_t following = 0;
    for (uint32_t tries = 0; tries < most; ++tries) {
      const uint64_t handout = A::fetch_add_relaxed(control.next, uint64_t{1});
      // Other writers that search meanwhile take numbers too, so the first `count` of
      // ours are not all of the blocks.
      if (tries > 0 && handout != following) most = probes(view, 2 * count);
      following = handout + 1;
      const auto index = static_cast<uint32_t>(handout % count);
      arctrace_block_header& header = view.block_header(index);
      // A1 acquire: the refill that preceded FREE is visible before we write over it.
      uint64_t seen = A::load_acquire(header.state);
      const BlockState state = BlockState::unpack(seen);
      if (state.phase != ARCTRACE_PHASE_FREE) {
        if (!overwrites) {
          if (count > most) step_over(view, handout, index);
          continue;
        }
        if (const uint64_t owned =
                Overwrite<A>::take(view, slot, name, handout, searches)) {
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

  // Whether take(), where it has found none, may find one if it is called again: it has
  // not checked all blocks, and some may be free.
  static bool may_have_more(const BufferView& view) {
    const uint32_t count = view.geometry().block_count;
    if (view.geometry().mode == ARCTRACE_MODE_OVERWRITE) {
      constexpr uint32_t kSearchesForBlock = 3;
      return probes(view, count) < count ||
             DefinitionsLife<A>::searches(view) / kSearchesForBlock < count;
    }
    if (probes(view, count) >= count) return false;
    return blocks_in_use<A>(view.control()) < count;
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
    // Relaxed: a writer that still finds the block's last name in the chain may read it
    // (close_older_chain_block), and closes nothing then. It is not one of A's stores,
    // between which the test of interleavings switches threads, because no step of the
    // protocol depends on it.
    IpcAtomics::store_relaxed(h.handout, uint64_t{taken.handout});
    h.base_ticks = id.base_ticks;
    h.retired = 0;
    h.checked = DefinitionsLife<A>::unchecked(BlockState::unpack(taken.state).generation);
    h.living = 0;
    // C1 release: a reader that sees the magic sees the identity.
    A::store_release(h.magic, uint32_t{ARCTRACE_BLOCK_MAGIC});
    DefinitionsLife<A>::count_opened(view, id.block_class);
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
  static uint32_t probes(const BufferView& view, uint32_t wanted) {
    const uint32_t most = view.geometry().mode == ARCTRACE_MODE_OVERWRITE
                              ? kProbesMaxOverwriting
                              : kProbesMax;
    return std::min(most, wanted);
  }

  // After a block that is not free was checked: leads all writers past the blocks after
  // it that were not free in the collector's last pass.
  static void step_over(const BufferView& view, uint64_t handout, uint32_t index) {
    if (index % ARCTRACE_BUSY_RUN_STEP != 0) return;
    const uint32_t run = A::load_relaxed(view.block_header(index).busy_run);
    if (run <= 1 || run > view.geometry().block_count - index) return;
    uint64_t expected = handout + 1;
    A::compare_exchange_acq_rel(view.control().next, expected, handout + run);
  }

  // Fails only if the state word is damaged; then the block is lost, and nothing else.
  static void change(const BufferView& view, const Taken& taken, BlockState to) {
    uint64_t expected = taken.state;
    A::compare_exchange_acq_rel(view.block_header(taken.index).state, expected,
                                to.pack());
  }
};

}  // namespace arctrace
