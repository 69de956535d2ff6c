// A tiny buffer, writers and a collector for the explorer: the production protocol over
// scheduling atomics, with just as much around it as a writer, or a pass of the
// collector, has in src/writer/shared_records.cpp and src/recorder/drain/drain.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/buffer/buffer_view.hpp"
#include "src/protocol/block_state.hpp"
#include "src/protocol/cpu_chain.hpp"
#include "src/protocol/handout.hpp"
#include "src/protocol/shared_chain.hpp"
#include "tests/interleavings/explorer.hpp"

namespace arctrace::testing {

constexpr uint32_t kBlockSize = 384;
constexpr uint32_t kRecordLength = 128;  // two of them fill a block

// Memory with `block_count` free blocks, `slot_count` slots whose locks live threads
// hold, and `cpu_count` CPUs that write.
class World {
 public:
  World(arctrace_mode mode, uint32_t block_count, uint32_t slot_count,
        uint32_t cpu_count = 0);

  // Restores the initial state.
  void restore();

  const BufferView& view() const { return view_; }
  arctrace_writer_slot& slot(uint32_t index) const { return view_.slot(index); }

  // The numbers that writers committed and that the collector found.
  std::vector<uint64_t> committed, collected;
  // For each slot: the handouts of the blocks that its records in the chain were written
  // to, in their order.
  std::vector<std::vector<uint64_t>> handouts;
  // The chain's block that each slot's writer remembers; header null: none.
  std::vector<KnownBlock> known;
  uint64_t lost = 0;
  uint64_t torn = 0;
  std::string damage;  // the first thing that no writer wrote; "": none

  // Describes what is wrong with the buffer at rest and with the records; "": nothing.
  // `is_whole`: nobody died.
  // REQUIRES: nobody is at work, and the collector found nothing more to do.
  std::string fault(bool is_whole) const;

 private:
  std::vector<uint64_t> memory_;
  std::vector<uint64_t> image_;
  BufferView view_;
};

BlockIdentity identity_of(uint32_t slot, arctrace_block_form form);

// A writer's death, thrown out of an operation.
struct Death {};

template <class A>
void begin_record(std::byte* at) {
  A::store_relaxed(word_at(at), ARCTRACE_WORD0(ARCTRACE_TYPE_MARK, kRecordLength) |
                                    ARCTRACE_IN_PROGRESS);
}

template <class A>
void fill_record(std::byte* at, uint64_t number) {
  A::store_relaxed(word_at(at + 16), static_cast<uint32_t>(number));
  A::store_relaxed(word_at(at + 20), ~static_cast<uint32_t>(number));
}

template <class A>
void commit_record(World& world, std::byte* at, uint64_t number) {
  A::store_release(word_at(at), ARCTRACE_WORD0(ARCTRACE_TYPE_MARK, kRecordLength));
  world.committed.push_back(number);
}

// Writes a record into the shared chain, as reserve_shared() and commit() do.
template <class A>
void write_shared(World& world, uint32_t slot, uint64_t number) {
  const SharedReservation got = SharedChain<A>::reserve(
      world.view(), slot, 0, world.view().control().shared_current, kRecordLength,
      identity_of(slot, ARCTRACE_FORM_FULL));
  if (got.record == nullptr) {
    ++world.lost;
    return;
  }
  begin_record<A>(got.record);
  fill_record<A>(got.record, number);
  commit_record<A>(world, got.record, number);
  world.handouts[slot].push_back(world.view().block_header(got.index).handout);
  SharedChain<A>::release(world.view().slot(slot).active[0]);
}

// Writes as a writer does that remembers the chain's block, as reserve_in_known_block()
// does. Its records are in the block that has its STACK.
template <class A>
void write_known(World& world, uint32_t slot, uint64_t number) {
  KnownBlock& known = world.known[slot];
  uint32_t& active = world.slot(slot).active[0];
  const uint64_t words = (kBlockSize - ARCTRACE_BLOCK_HEADER_SIZE) / 4;
  std::byte* record = nullptr;
  if (known.header != nullptr) {
    record = SharedChain<A>::reserve_in_known(*known.header, known.name, known.opening,
                                              active, words, kRecordLength);
    if (record == nullptr) SharedChain<A>::release(active);
  }
  if (record != nullptr) {
    if (known.header->handout != world.handouts[slot].back()) {
      world.damage = "a record in another block than its writer's STACK";
    }
  } else {
    const SharedReservation got = SharedChain<A>::reserve(
        world.view(), slot, 0, world.view().control().shared_current, kRecordLength,
        identity_of(slot, ARCTRACE_FORM_FULL));
    known.header = nullptr;
    if (got.record == nullptr) {
      ++world.lost;
      return;
    }
    record = got.record;
    if (!SharedChain<A>::know(world.view(), got.name, known)) known.header = nullptr;
    world.handouts[slot].push_back(world.view().block_header(got.index).handout);
  }
  begin_record<A>(record);
  fill_record<A>(record, number);
  commit_record<A>(world, record, number);
  SharedChain<A>::release(active);
}

// Takes a block, writes `count` records from `number` on and closes it, as
// change_block(), append() and close_block() do.
template <class A>
void write_exclusive(World& world, uint32_t slot, uint64_t number, uint32_t count) {
  const auto taken = Handout<A>::take(world.view(), slot, world.slot(slot).current);
  if (!taken) {
    world.lost += count;
    return;
  }
  Handout<A>::open(world.view(), *taken, identity_of(slot, ARCTRACE_FORM_COMPACT));
  std::byte* at = world.view().block(taken->index) + ARCTRACE_BLOCK_HEADER_SIZE;
  for (uint32_t i = 0; i < count; ++i, at += kRecordLength) {
    begin_record<A>(at);
    fill_record<A>(at, number + i);
    commit_record<A>(world, at, number + i);
  }
  Handout<A>::close(world.view(), *taken);
}

// Runs `body`; if it dies, the kernel marks the slot's lock.
template <class A, class Body>
void as_thread(World& world, uint32_t slot, Body&& body) {
  try {
    body();
  } catch (const Death&) {
    A::store_release(world.slot(slot).lock, kOwnerDied | (slot + 1));
  }
}

template <class A>
void collect_block(World& world, uint32_t index) {
  std::byte* block = world.view().block(index);
  for (uint32_t at = ARCTRACE_BLOCK_HEADER_SIZE; at < kBlockSize;) {
    const uint32_t word0 = A::load_acquire(word_at(block + at));
    if (word0 == ARCTRACE_FILL) {
      at += 4;
      continue;
    }
    const uint32_t length = word0 & ARCTRACE_LENGTH_MASK;
    const uint32_t type = word0 >> ARCTRACE_TYPE_SHIFT & ARCTRACE_TYPE_MASK;
    if (length != kRecordLength) {
      world.damage = "a record that nobody wrote";
      return;
    }
    if ((word0 & ARCTRACE_IN_PROGRESS) != 0) {
      ++world.torn;
    } else if (type == ARCTRACE_TYPE_MARK) {
      const uint32_t number = A::load_relaxed(word_at(block + at + 16));
      if (A::load_relaxed(word_at(block + at + 20)) != ~number) {
        world.damage = "a record committed without its body";
      }
      world.collected.push_back(number);
    }
    at += length;
  }
}

// A pass of the collector: the dead, then states, then names, then blocks that may be
// drained. Returns the number of blocks that it changed.
template <class A>
uint32_t collect(World& world, bool heeds_names = true) {
  const BufferView& view = world.view();
  uint32_t changed = 0;
  for (uint32_t i = 0; i < Recycle<A>::slots_used(view); ++i) {
    uint32_t lock = A::load_acquire(view.slot(i).lock);
    if (lock == 0 || is_live(lock) ||
        !A::compare_exchange_acq_rel(view.slot(i).lock, lock, kBeingReaped)) {
      continue;
    }
    DeadSlot<A>::clean_up(view, i, [](uint32_t) {});
    A::store_release(view.slot(i).lock, uint32_t{0});
    ++changed;
  }
  const uint32_t count = view.geometry().block_count;
  std::vector<BlockState> states;
  for (uint32_t i = 0; i < count; ++i) states.push_back(Recycle<A>::state(view, i));
  std::vector<bool> named(count);
  Recycle<A>::mark_named(view, [&](uint32_t index) { named[index] = true; });
  for (uint32_t i = 0; i < count; ++i) {
    if (named[i] && heeds_names) continue;
    const uint64_t name = BlockName::make(states[i].generation, i);
    if (states[i].phase == ARCTRACE_PHASE_SHARED &&
        A::load_acquire(view.control().shared_current) != name &&
        !CpuChain<A>::is_named(view, name)) {
      close_shared<A>(view, i, states[i].generation);
      ++changed;
    }
    if (states[i].phase != ARCTRACE_PHASE_CLOSED ||
        !Recycle<A>::begin_drain(view, i, states[i])) {
      continue;
    }
    if (A::load_acquire(view.block_header(i).magic) == ARCTRACE_BLOCK_MAGIC) {
      collect_block<A>(world, i);
    }
    Recycle<A>::finish_drain(view, i, kBlockSize);
    ++changed;
  }
  return changed;
}

}  // namespace arctrace::testing
