// Overwrite mode: a writer that needs a block takes the oldest complete one, in the order
// of the hand-out: CLOSED -> RESETTING -> OWNED.
#pragma once

#include <arctrace/format.h>

#include <cstdint>

#include "src/buffer/buffer_view.hpp"
#include "src/protocol/block_state.hpp"
#include "src/protocol/definitions_life.hpp"

namespace arctrace {

template <class A>
class Overwrite {
 public:
  // Takes the block of hand-out number `handout` for the holder of slot `slot` and
  // refills it, if its contents may be overwritten. Returns the OWNED state as stored, or
  // 0. `name`: as in Handout::take(). `searches`: how many searches of all slots it may
  // make; each subtracts one, and at 0 the block stays.
  static uint64_t take(const BufferView& view, uint32_t slot, uint32_t& name,
                       uint64_t handout, uint32_t& searches) {
    const auto index = static_cast<uint32_t>(handout % view.geometry().block_count);
    const uint64_t resetting =
        reset(view, slot, name, index, searches, is_before(view, handout));
    if (resetting == 0) return 0;
    const BlockState state = BlockState::unpack(resetting);
    const BlockState owned{state.generation + 1, slot, ARCTRACE_PHASE_OWNED};
    return change(view, index, resetting, owned) ? owned.pack() : 0;
  }

  // Frees a block of definitions that nothing needs any more, so that others get space.
  // Checks at most kReclaimProbesMax blocks, and goes on with others in the next call.
  // False: no space was gained. `slot`, `name`: as in Handout::take().
  static bool reclaim(const BufferView& view, uint32_t slot, uint32_t& name) {
    const uint32_t count = view.geometry().block_count;
    uint32_t searches = DefinitionsLife<A>::searches(view);
    for (uint32_t probes = 0; probes < count && probes < kReclaimProbesMax; ++probes) {
      uint64_t& next = view.control().reclaim_next;
      const uint64_t number = A::fetch_add_relaxed(next, uint64_t{1});
      const auto index = static_cast<uint32_t>(number % count);
      if (!has_definitions(view.block_header(index))) continue;
      const uint64_t resetting =
          reset(view, slot, name, index, searches, has_definitions);
      if (resetting == 0) continue;
      free(view, index, resetting);
      A::store_release(name, uint32_t{0});
      if (DefinitionsLife<A>::have_space(view)) return true;
    }
    return false;
  }

  // Frees the block that hand-out number `handout` will get, if its contents may be
  // overwritten. Returns whether it is free now. For the recorder, since the kernel
  // writer takes free blocks only.
  static bool make_free(const BufferView& view, uint64_t handout) {
    const auto index = static_cast<uint32_t>(handout % view.geometry().block_count);
    uint32_t name = 0;  // in no slot: after a death here the next collector cleans up
    if (Recycle<A>::state(view, index).phase == ARCTRACE_PHASE_FREE) return true;
    uint32_t searches = DefinitionsLife<A>::searches(view);
    const uint64_t resetting = reset(view, ARCTRACE_KERNEL_SLOT, name, index, searches,
                                     is_before(view, handout));
    return resetting != 0 && free(view, index, resetting);
  }

 private:
  static constexpr uint32_t kReclaimProbesMax = 256;

  static bool has_definitions(arctrace_block_header& header) {
    // C2 acquire, matches C1.
    return A::load_acquire(header.magic) == ARCTRACE_BLOCK_MAGIC &&
           DefinitionsLife<A>::is_definitions(header);
  }

  // A predicate of a block's header: whether the block got its contents before hand-out
  // number `handout`. If not, the writer that has this number was stopped while the
  // hand-out wrapped around, and the contents are among the newest now. A number that was
  // never handed out is damage, and keeps no block.
  static auto is_before(const BufferView& view, uint64_t handout) {
    return [&view, handout](arctrace_block_header& header) {
      // C2 acquire, matches C1.
      if (A::load_acquire(header.magic) != ARCTRACE_BLOCK_MAGIC) return true;
      const uint64_t of_block = A::load_relaxed(header.handout);
      return of_block < handout || of_block >= A::load_relaxed(view.control().next);
    };
  }

  // CLOSED -> RESETTING, which counts as taken, and refills the block. Returns the state
  // as stored, or 0 if the block's contents must stay, also because may_go(header) is
  // false. This is asked after the state was loaded, and the exchange fails if the block
  // has got other contents since: so what a writer saw of it before it was stopped has no
  // effect.
  template <class MayGo>
  static uint64_t reset(const BufferView& view, uint32_t slot, uint32_t& name,
                        uint32_t index, uint32_t& searches, const MayGo& may_go) {
    arctrace_block_header& header = view.block_header(index);
    close_to_overwrite(view, index, searches);
    // D2 acquire, matches D1.
    uint64_t seen = A::load_acquire(header.state);
    const BlockState closed = BlockState::unpack(seen);
    if (closed.phase != ARCTRACE_PHASE_CLOSED || !may_go(header) ||
        is_needed(view, index, closed, searches)) {
      return 0;
    }
    // B1 release, as for a free block: a process that sees RESETTING by this slot also
    // sees the name.
    A::store_release(name, index + 1);
    const uint64_t resetting =
        BlockState{closed.generation, slot, ARCTRACE_PHASE_RESETTING}.pack();
    if (!A::compare_exchange_acq_rel(header.state, seen, resetting)) return 0;
    // The block counts as taken before the refill, because that takes long enough for
    // signal handlers to come and jump.
    A::fetch_add_relaxed(view.control().taken, uint64_t{1});
    DefinitionsLife<A>::count_reset(view, header);
    Recycle<A>::wipe(view, index, view.geometry().block_size);
    return resetting;
  }

  // RESETTING -> FREE.
  static bool free(const BufferView& view, uint32_t index, uint64_t resetting) {
    const BlockState state = BlockState::unpack(resetting);
    // A2, by the exchange.
    if (!change(view, index, resetting, {state.generation + 1, 0, ARCTRACE_PHASE_FREE})) {
      return false;
    }
    A::fetch_add_relaxed(view.control().freed, uint64_t{1});
    return true;
  }

  // Fails only if the state word is damaged.
  static bool change(const BufferView& view, uint32_t index, uint64_t from,
                     BlockState to) {
    return A::compare_exchange_acq_rel(view.block_header(index).state, from, to.pack());
  }

  // Closes a block whose owner died, or a shared one that is the oldest.
  static void close_to_overwrite(const BufferView& view, uint32_t index,
                                 uint32_t& searches) {
    arctrace_block_header& header = view.block_header(index);
    const uint64_t seen = A::load_acquire(header.state);
    const BlockState state = BlockState::unpack(seen);
    switch (state.phase) {
      case ARCTRACE_PHASE_OWNED:
      case ARCTRACE_PHASE_RESETTING:
        if (state.slot < view.geometry().slot_count &&
            !is_live(A::load_acquire(view.slot(state.slot).lock))) {
          DeadSlot<A>::close_for_owner(view, header, seen);
        }
        break;
      case ARCTRACE_PHASE_SHARED:
        if (is_over(view, index, searches)) {
          close_shared<A>(view, index, state.generation);
        }
        break;
      default:
        break;
    }
  }

  static bool is_over(const BufferView& view, uint32_t index, uint32_t& searches) {
    arctrace_block_header& header = view.block_header(index);
    if (DefinitionsLife<A>::is_definitions(header)) {
      return DefinitionsLife<A>::is_of_gone(view, header, searches);
    }
    if (!take_search(searches)) return false;
    // A block that the chain names is over, too: it is the oldest, and the next record
    // opens another one. But first its opener must have finished, which names it until
    // then.
    return !Recycle<A>::is_named(view, index);
  }

  // Whether a CLOSED block must stay, because a writer may still write to it or because
  // its definitions are in use.
  static bool is_needed(const BufferView& view, uint32_t index, BlockState closed,
                        uint32_t& searches) {
    arctrace_block_header& header = view.block_header(index);
    // A block that was taken and never opened holds no records.
    if (A::load_acquire(header.magic) != ARCTRACE_BLOCK_MAGIC) return false;
    if (is_exclusive_form(A::load_relaxed(header.form))) {
      return closed.slot < view.geometry().slot_count &&
             Recycle<A>::is_pinned(view, closed.slot, index);
    }
    if (DefinitionsLife<A>::is_definitions(header) &&
        !DefinitionsLife<A>::is_over(view, header, searches)) {
      return true;
    }
    return !take_search(searches) || Recycle<A>::is_named(view, index);
  }
};

}  // namespace arctrace
