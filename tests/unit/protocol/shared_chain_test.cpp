// Reservations in the chain of shared blocks: full blocks, lost races, late commits
// and deaths.
#include "src/protocol/shared_chain.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "src/protocol/block_state.hpp"
#include "tests/support/test_session.hpp"
#include "tests/unit/protocol/spy_atomics.hpp"

namespace arctrace::testing {
namespace {

using PlainChain = SharedChain<IpcAtomics>;
using SpiedChain = SharedChain<SpyAtomics>;

constexpr BlockIdentity kIdentity{
    ARCTRACE_FORM_FULL, ARCTRACE_CLASS_DATA, 1, 1, 1, 1, 0, 0};

// A buffer and one chain in it.
struct Chain {
  explicit Chain(uint32_t blocks) : session(small_buffer(384, blocks)) {}

  SharedReservation reserve(uint32_t length, uint32_t slot = 0, uint32_t level = 0) {
    return PlainChain::reserve(view(), slot, level, word, length, kIdentity);
  }
  const BufferView& view() const { return session.view(); }
  uint32_t offset_of(const SharedReservation& got) const {
    return static_cast<uint32_t>(got.record - view().block(got.index));
  }
  uint32_t phase(uint32_t index) const {
    return static_cast<uint32_t>(Recycle<IpcAtomics>::state(view(), index).phase);
  }

  TestSession session;
  uint64_t word = 0;
};

TEST_CASE("shared chain: reservations follow one another and name their block") {
  Chain chain(2);
  const SharedReservation first = chain.reserve(100);
  const SharedReservation second = chain.reserve(20, 1, 3);
  CHECK(chain.offset_of(first) == 128);
  CHECK(chain.offset_of(second) == 228);
  CHECK(first.index == second.index);
  CHECK(chain.word == first.name);
  CHECK(chain.view().slot(0).active[0] == first.index + 1);
  CHECK(chain.view().slot(1).active[3] == first.index + 1);
  PlainChain::release(chain.view().slot(1).active[3]);
  CHECK(chain.view().slot(1).active[3] == 0);
  CHECK(chain.view().slot(0).active[0] == first.index + 1);
}

TEST_CASE("shared chain: a record that fits to the last byte, and one that does not") {
  Chain chain(3);
  CHECK(chain.reserve(256).index == 0);
  const SharedReservation next = chain.reserve(16);
  CHECK(next.index == 1);
  CHECK(chain.phase(0) == ARCTRACE_PHASE_CLOSED);
  CHECK(chain.view().block_header(0).next >= 384);
  CHECK(chain.reserve(240).index == 1);
  CHECK(chain.phase(1) == ARCTRACE_PHASE_SHARED);  // full, but no writer has noticed
}

TEST_CASE("shared chain: a lack of room is reported, and no name is left") {
  Chain chain(2);
  CHECK(chain.reserve(256).record != nullptr);
  CHECK(chain.reserve(256).record != nullptr);
  CHECK(chain.reserve(16).record == nullptr);
  CHECK(chain.view().slot(0).active[0] == 0);
  CHECK(chain.phase(1) == ARCTRACE_PHASE_CLOSED);
}

TEST_CASE(
    "shared chain: two writers that open the next block at once both keep their record") {
  Chain chain(4);
  chain.reserve(256);
  // While writer 0 has taken a block and not opened it, writer 1 opens another one.
  bool done = false;
  SpyAtomics::reset([&](uint32_t) {
    if (done || chain.phase(1) != ARCTRACE_PHASE_OWNED) return;
    done = true;
    CHECK(chain.reserve(100, 1).index == 2);
  });
  const SharedReservation late =
      SpiedChain::reserve(chain.view(), 0, 0, chain.word, 64, kIdentity);
  REQUIRE(done);
  REQUIRE(late.record != nullptr);
  SpyAtomics::reset(nullptr);
  // Writer 0 saw that in time: its block was freed, and its record is in the other block.
  CHECK(late.index == 2);
  CHECK(chain.offset_of(late) == 228);
  CHECK(chain.phase(1) == ARCTRACE_PHASE_FREE);
}

TEST_CASE("shared chain: an opener that is beaten at the last step leaves its block") {
  Chain chain(4);
  chain.reserve(256);
  bool done = false;
  SpyAtomics::reset([&](uint32_t) {
    if (done || chain.phase(1) != ARCTRACE_PHASE_SHARED) return;
    done = true;
    CHECK(chain.reserve(100, 1).index == 2);
  });
  const SharedReservation late =
      SpiedChain::reserve(chain.view(), 0, 0, chain.word, 64, kIdentity);
  SpyAtomics::reset(nullptr);
  REQUIRE(done);
  CHECK(late.index == 2);
  CHECK(chain.offset_of(late) == 228);
  CHECK(late.opened);
  CHECK(chain.phase(1) == ARCTRACE_PHASE_CLOSED);
  CHECK(word_at(chain.view().block(1) + 128) == ARCTRACE_WORD0(ARCTRACE_TYPE_PAD, 64));
  CHECK(chain.view().slot(0).active[0] == 3);  // named until its record is committed
  CHECK(BlockName::index(chain.word) == 2);
}

TEST_CASE("shared chain: a late reservation in a block of another phase fails") {
  for (const arctrace_phase phase :
       {ARCTRACE_PHASE_FREE, ARCTRACE_PHASE_OWNED, ARCTRACE_PHASE_CLOSED,
        ARCTRACE_PHASE_DRAINING, ARCTRACE_PHASE_RESETTING}) {
    CAPTURE(phase);
    Chain chain(3);
    const SharedReservation first = chain.reserve(32);
    close_shared<IpcAtomics>(chain.view(), first.index, 0);
    chain.view().block_header(0).state = BlockState{1, 5, phase}.pack();
    const SharedReservation late = chain.reserve(32);
    REQUIRE(late.record != nullptr);
    CHECK(late.index != first.index);
    CHECK(chain.view().block_header(0).state == BlockState{1, 5, phase}.pack());
  }
}

// The chain's word is outdated: the block that it names was recycled and opened by
// another chain, such as another process' definitions.
TEST_CASE("shared chain: a late reservation does not land in another chain's block") {
  Chain chain(2);
  const SharedReservation first = chain.reserve(256);
  PlainChain::release(chain.view().slot(0).active[0]);
  close_shared<IpcAtomics>(chain.view(), first.index, 0);
  REQUIRE(Recycle<IpcAtomics>::begin_drain(chain.view(), 0,
                                           Recycle<IpcAtomics>::state(chain.view(), 0)));
  Recycle<IpcAtomics>::finish_drain(chain.view(), 0, 384);
  chain.view().control().next = 0;
  uint64_t other = 0;
  const SharedReservation theirs = PlainChain::reserve(
      chain.view(), 1, 0, other, 32,
      {ARCTRACE_FORM_FULL, ARCTRACE_CLASS_DEFINITIONS, 2, 2, 2, 2, 0, 0});
  REQUIRE(theirs.index == 0);

  const SharedReservation late = chain.reserve(48);
  REQUIRE(late.record != nullptr);
  CHECK(late.index == 1);
  CHECK(late.name == BlockName::make(0, 1));
  CHECK(chain.view().slot(0).active[0] == 2);
  // A reservation in the other chain's block reads as padding.
  const uint32_t left = word_at(chain.view().block(0) + 128 + 32);
  CHECK(left == ARCTRACE_WORD0(ARCTRACE_TYPE_PAD, 48));
  CHECK(chain.phase(0) == ARCTRACE_PHASE_SHARED);
}

TEST_CASE("shared chain: hostile words never lead outside the blocks") {
  Random random(test_seed());
  Chain chain(3);
  for (int i = 0; i < 100000; ++i) {
    chain.word = random.next() >> random.below(64);
    for (uint32_t b = 0; b < 3; ++b) {
      arctrace_block_header& header = chain.view().block_header(b);
      header.next = random.next() >> random.below(64);
      header.state = random.below(2) == 0 ? BlockState{0, 0, ARCTRACE_PHASE_FREE}.pack()
                                          : random.next() >> random.below(64);
    }
    const uint32_t length = 16 + 4 * random.below(60);
    const SharedReservation got = chain.reserve(length);
    if (got.record == nullptr) continue;
    REQUIRE(got.index < 3);
    const uint32_t offset = chain.offset_of(got);
    REQUIRE(offset >= ARCTRACE_BLOCK_HEADER_SIZE);
    REQUIRE(offset + length <= 384);
    REQUIRE(offset % 4 == 0);
  }
}

TEST_CASE("shared chain: a death after any operation leaves nothing for ever") {
  for (uint32_t death = 0; death < 40; ++death) {
    CAPTURE(death);
    Chain chain(3);
    chain.reserve(200, 1);
    PlainChain::release(chain.view().slot(1).active[0]);
    SpyAtomics::reset([death](uint32_t operation) {
      if (operation == death) throw Death();
    });
    try {
      SpiedChain::reserve(chain.view(), 0, 0, chain.word, 200, kIdentity);
      SpiedChain::release(chain.view().slot(0).active[0]);
    } catch (const Death&) {
    }
    SpyAtomics::reset(nullptr);
    DeadSlot<IpcAtomics>::clean_up(chain.view(), 0, [](uint32_t) {});
    CHECK(chain.session.blocks_in(ARCTRACE_PHASE_OWNED) == 0);
    // The next writer finds space: only full blocks are unusable.
    CHECK(chain.reserve(200, 1).record != nullptr);
  }
}

TEST_CASE("shared chain: every reservation is named before it is made") {
  Chain chain(3);
  SpyAtomics::reset([&](uint32_t) {
    for (uint32_t i = 0; i < 3; ++i) {
      const uint64_t next = chain.view().block_header(i).next;
      if (chain.phase(i) == ARCTRACE_PHASE_SHARED && next > 128 && next <= 384) {
        CHECK(chain.view().slot(0).active[0] == i + 1);
      }
    }
  });
  for (int i = 0; i < 6; ++i) {
    SpiedChain::reserve(chain.view(), 0, 0, chain.word, 120, kIdentity);
  }
  CHECK(SpyAtomics::operations > 20);
}

TEST_CASE("shared chain: close is for one generation and may be repeated") {
  Chain chain(2);
  chain.reserve(32);
  close_shared<IpcAtomics>(chain.view(), 0, 5);
  CHECK(chain.phase(0) == ARCTRACE_PHASE_SHARED);
  close_shared<IpcAtomics>(chain.view(), 0, 0);
  close_shared<IpcAtomics>(chain.view(), 0, 0);
  CHECK(chain.phase(0) == ARCTRACE_PHASE_CLOSED);
}

}  // namespace
}  // namespace arctrace::testing
