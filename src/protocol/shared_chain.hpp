// Shared blocks: many writers reserve records in one block by fetch-add on its `next`. A
// chain is a word that names its open block: the session's word (control.shared_current),
// or a process' own word for its definitions.
#pragma once

#include <arctrace/format.h>

#include <bit>
#include <cstddef>
#include <cstdint>

#include "src/buffer/buffer_view.hpp"
#include "src/protocol/block_state.hpp"
#include "src/protocol/handout.hpp"

namespace arctrace {

struct SharedReservation {
  std::byte* record;  // the reserved bytes in the buffer; null: there was no block
  uint32_t index;     // the block
  uint64_t name;      // the block and its generation, as in the chain's word
  bool opened;        // the reservation opened a new block
};

// A chain's open block, as a writer has seen it: all that is needed to reserve there
// again.
struct KnownBlock {
  arctrace_block_header* header;
  uint64_t opening;  // the header's handout + 1, so that 0 is no block's
  uint32_t name;     // as in active[]
};

template <class A>
class SharedChain {
 public:
  // Reserves `length` bytes for the holder of slot `slot`. active[level] of that slot
  // names the block from before the reservation until release().
  // REQUIRES: length <= record_length_max(), level < ARCTRACE_ACTIVE_DEPTH.
  static SharedReservation reserve(const BufferView& view, uint32_t slot, uint32_t level,
                                   uint64_t& chain, uint32_t length,
                                   const BlockIdentity& id) {
    uint32_t& active = view.slot(slot).active[level];
    bool opened = false;
    for (uint32_t tries = 0; tries < kTries; ++tries) {
      // E1 acquire: the named block's header is visible.
      uint64_t current = A::load_acquire(chain);
      if (const SharedReservation got = reserve_in(view, active, current, length);
          got.record != nullptr) {
        return {got.record, got.index, got.name, opened};
      }
      // Another writer may have opened the next block meanwhile.
      if (A::load_acquire(chain) != current) continue;
      if (id.block_class == ARCTRACE_CLASS_DEFINITIONS &&
          !DefinitionsLife<A>::have_space(view) &&
          !Overwrite<A>::reclaim(view, slot, active)) {
        break;
      }
      const auto taken = Handout<A>::take(view, slot, active);
      if (!taken) break;
      if (A::load_acquire(chain) != current) {
        Handout<A>::give_back(view, *taken);
        continue;
      }
      opened = true;
      if (const SharedReservation got =
              open_with(view, chain, current, *taken, length, id);
          got.record != nullptr) {
        return got;
      }
    }
    A::store_release(active, uint32_t{0});
    return {};
  }

  // F1 release: a process that sees the name gone also sees the committed record.
  static void release(uint32_t& active) { A::store_release(active, uint32_t{0}); }

  // Reserves in the block that `current`, a chain's word, names. `active` names the block
  // meanwhile. The record is null if the block is full, in which case it is closed, or if
  // it has another generation by now.
  static SharedReservation reserve_in(const BufferView& view, uint32_t& active,
                                      uint64_t current, uint32_t length) {
    if (current == 0) return {};
    const uint32_t index = BlockName::index(current);
    if (index >= view.geometry().block_count) return {};
    arctrace_block_header& header = view.block_header(index);
    // B2 release, with the fetch-add after it: a process that makes this block's `next`
    // pass its end (G1) sees our name if our reservation came first.
    A::store_release(active, index + 1);
    const uint64_t offset = A::fetch_add_acq_rel(header.next, uint64_t{length});
    if (__builtin_expect(offset >= ARCTRACE_BLOCK_HEADER_SIZE && offset % 4 == 0 &&
                             offset <= view.geometry().block_size - length,
                         1)) {
      std::byte* record = reinterpret_cast<std::byte*>(&header) + offset;
      // Since the chain's word was read, the block may have been recycled and opened
      // again, even by another chain. From here on it keeps its generation, because we
      // name it.
      const BlockState state = BlockState::unpack(A::load_acquire(header.state));
      if (__builtin_expect(state.generation == BlockName::generation(current), 1)) {
        return {record, index, current, false};
      }
      // I1 release.
      A::store_release(word_at(record), ARCTRACE_WORD0(ARCTRACE_TYPE_PAD, length));
      return {};
    }
    close_full(view, current);
    return {};
  }

  // Whether the block that `current`, a chain's word, names is still open; then sets
  // `known`. REQUIRES: the caller has reserved in it.
  static bool know(const BufferView& view, uint64_t current, KnownBlock& known) {
    arctrace_block_header& header = view.block_header(BlockName::index(current));
    const BlockState state = BlockState::unpack(A::load_acquire(header.state));
    known = {&header, A::load_relaxed(header.handout) + 1, BlockName::index(current) + 1};
    return state.phase == ARCTRACE_PHASE_SHARED &&
           state.generation == BlockName::generation(current);
  }

  // Reserves in a block that is known by its `header` and `name`, without reading the
  // chain's word. If the reservation fits, the block is open, and keeps its handout from
  // then on because we name it: if that equals `opening`, which is read last, the block
  // is the one that the chain named, and still names, because the chain's word changes
  // only after the block was closed. The handout is on a line that nobody writes to
  // meanwhile; for the block's state, the line that `next` is on would have to be fetched
  // again. `words`: how many words a block has after its header. Null: the block takes no
  // such record any more. REQUIRES: length <= record_length_max().
  static std::byte* reserve_in_known(arctrace_block_header& header, uint32_t name,
                                     const uint64_t& opening, uint32_t& active,
                                     const uint64_t& words, uint32_t length) {
    A::store_release(active, name);  // B2, as in reserve_in()
    // U2 acquire: of a block that has space, its opener's handout is visible.
    const uint64_t offset = A::fetch_add_acq_rel(header.next, uint64_t{length});
    // After the rotation, an end that is not a multiple of 4 is larger than any other.
    const uint64_t end = std::rotr(offset + length - ARCTRACE_BLOCK_HEADER_SIZE, 2);
    if (__builtin_expect(end > words || offset < ARCTRACE_BLOCK_HEADER_SIZE, 0)) {
      return nullptr;
    }
    std::byte* record = reinterpret_cast<std::byte*>(&header) + offset;
    if (__builtin_expect(A::load_relaxed(header.handout) + 1 == opening, 1))
      return record;
    A::store_release(word_at(record), ARCTRACE_WORD0(ARCTRACE_TYPE_PAD, length));  // I1
    return nullptr;
  }

  // This is out of line, so that callers on a fast path save few registers.
  __attribute__((noinline)) static void close_full(const BufferView& view,
                                                   uint64_t current) {
    close_shared<A>(view, BlockName::index(current), BlockName::generation(current));
  }

  // Opens a taken block for all writers, with our own record reserved as its first, and
  // names the block in the chain if the chain's word still is `current`. The record is
  // null if it is not.
  static SharedReservation open_with(const BufferView& view, uint64_t& chain,
                                     uint64_t current,
                                     const typename Handout<A>::Taken& taken,
                                     uint32_t length, const BlockIdentity& id) {
    Handout<A>::open(view, taken, id);
    arctrace_block_header& header = view.block_header(taken.index);
    const BlockState owned = BlockState::unpack(taken.state);
    uint64_t expected = taken.state;
    A::compare_exchange_acq_rel(header.state, expected,
                                owned.with(ARCTRACE_PHASE_SHARED).pack());
    // U1 release: the header is visible to a writer that gets space by it.
    A::store_release(header.next, uint64_t{ARCTRACE_BLOCK_HEADER_SIZE + length});
    const uint64_t name = BlockName::make(owned.generation, taken.index);
    // E2 release: the header is visible to a writer that reads the name.
    std::byte* record = view.block(taken.index) + ARCTRACE_BLOCK_HEADER_SIZE;
    if (A::compare_exchange_acq_rel(chain, current, name)) {
      return {record, taken.index, name, true};
    }
    // Another writer was faster. A record here might be taken for a later one than those
    // that the same writer adds to the chain's block, which was handed out before ours.
    A::store_release(word_at(record), ARCTRACE_WORD0(ARCTRACE_TYPE_PAD, length));
    close_shared<A>(view, taken.index, owned.generation);
    return {};
  }

 private:
  // If more attempts than this are needed, other writers fill blocks as fast as this one
  // asks. The record is then lost, since a writer never spins.
  static constexpr uint32_t kTries = 64;
};

}  // namespace arctrace
