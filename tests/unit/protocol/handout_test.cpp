// How a writer takes a free block, alone, against others, and when it dies in between.
#include "src/protocol/handout.hpp"

#include <doctest/doctest.h>

#include <set>

#include "src/protocol/block_state.hpp"
#include "tests/support/test_session.hpp"
#include "tests/unit/protocol/spy_atomics.hpp"

namespace arctrace::testing {
namespace {

using Spied = Handout<SpyAtomics>;
using Plain = Handout<IpcAtomics>;

BlockState state_of(const TestSession& session, uint32_t index) {
  return Recycle<IpcAtomics>::state(session.view(), index);
}

TEST_CASE("handout: a step that was not counted leaves room for data") {
  TestSession session(small_buffer(384, 64));
  arctrace_control& control = session.view().control();
  REQUIRE(control.taken == 0);
  control.freed = 1;  // the writer that took this block died before it counted it
  CHECK(blocks_in_use<IpcAtomics>(control) == 0);
  CHECK_FALSE(Plain::rest_is_for_definitions(session.view()));
  control.taken = 61;
  CHECK(blocks_in_use<IpcAtomics>(control) == 60);
  CHECK(Plain::rest_is_for_definitions(session.view()));
}

TEST_CASE("handout: each block once, then none, and the name says which") {
  TestSession session(small_buffer(384, 5));
  uint32_t& name = session.view().slot(3).current;
  std::set<uint32_t> taken;
  for (int i = 0; i < 5; ++i) {
    const auto got = Plain::take(session.view(), 3, name);
    REQUIRE(got);
    CHECK(taken.insert(got->index).second);
    CHECK(got->handout % 5 == got->index);
    CHECK(name == got->index + 1);
    CHECK(state_of(session, got->index).phase == ARCTRACE_PHASE_OWNED);
    CHECK(state_of(session, got->index).slot == 3);
  }
  CHECK(session.view().control().taken == 5);
  CHECK_FALSE(Plain::take(session.view(), 3, name));
  CHECK(name == 0);
  CHECK(session.view().control().taken == 5);
}

TEST_CASE("handout: a block that is not free is skipped, never waited for") {
  TestSession session(small_buffer(384, 4));
  for (const uint32_t index : {0u, 1u, 3u}) {
    session.view().block_header(index).state =
        BlockState{0, 9, ARCTRACE_PHASE_DRAINING}.pack();
  }
  uint32_t& name = session.view().slot(0).current;
  const auto got = Plain::take(session.view(), 0, name);
  REQUIRE(got);
  CHECK(got->index == 2);
  CHECK(got->handout == 2);
}

TEST_CASE("handout: the only free block is found though others take numbers meanwhile") {
  constexpr uint32_t kBlocks = 4;
  TestSession session(small_buffer(384, kBlocks));
  const BufferView& view = session.view();
  for (uint32_t index = 0; index + 1 < kBlocks; ++index) {
    view.block_header(index).state = BlockState{0, 9, ARCTRACE_PHASE_DRAINING}.pack();
  }
  // After operation 3, the check of the second block, another writer takes two numbers:
  // those of the third block and of the free one, which it does not need.
  SpyAtomics::reset([&](uint32_t operation) {
    if (operation == 3) view.control().next += 2;
  });
  uint32_t& name = view.slot(0).current;
  const auto got = Spied::take(view, 0, name);
  REQUIRE(got);
  CHECK(got->index == kBlocks - 1);
  CHECK(got->handout == 2 * kBlocks - 1);
}

TEST_CASE("handout: a writer that is beaten to a block takes the next one") {
  TestSession session(small_buffer(384, 4));
  const BufferView& view = session.view();
  // Operation 2 stores the name: the block was seen FREE, and is not taken yet.
  SpyAtomics::reset([&](uint32_t operation) {
    if (operation != 2) return;
    view.block_header(0).state = BlockState{0, 7, ARCTRACE_PHASE_OWNED}.pack();
  });
  const auto got = Spied::take(view, 1, view.slot(1).current);
  REQUIRE(got);
  CHECK(got->index == 1);
  CHECK(view.slot(1).current == 2);
  CHECK(state_of(session, 0).slot == 7);
}

TEST_CASE("handout: a writer that a whole life of the block overtakes does not take it") {
  TestSession session(small_buffer(384, 2));
  const BufferView& view = session.view();
  SpyAtomics::reset([&](uint32_t operation) {
    // The block is free again, but in the next generation: its refill may not be visible
    // yet.
    if (operation == 2) {
      view.block_header(0).state = BlockState{1, 0, ARCTRACE_PHASE_FREE}.pack();
    }
  });
  const auto got = Spied::take(view, 1, view.slot(1).current);
  REQUIRE(got);
  CHECK(got->index == 1);
  CHECK(state_of(session, 0).phase == ARCTRACE_PHASE_FREE);
}

TEST_CASE("handout: at every instant a taken block is named by its slot") {
  TestSession session(small_buffer(384, 3));
  const BufferView& view = session.view();
  SpyAtomics::reset([&](uint32_t) {
    for (uint32_t i = 0; i < 3; ++i) {
      if (state_of(session, i).phase != ARCTRACE_PHASE_OWNED) continue;
      CHECK(view.slot(state_of(session, i).slot).current == i + 1);
    }
  });
  for (int i = 0; i < 4; ++i) {
    if (const auto got = Spied::take(view, 2, view.slot(2).current)) {
      Spied::close(view, *got);
    }
  }
  CHECK(session.blocks_in(ARCTRACE_PHASE_CLOSED) == 3);
}

TEST_CASE("handout: a death after any operation leaves no block that nobody finds") {
  for (uint32_t death = 0; death < 12; ++death) {
    CAPTURE(death);
    TestSession session(small_buffer(384, 3));
    const BufferView& view = session.view();
    SpyAtomics::reset([death](uint32_t operation) {
      if (operation == death) throw Death();
    });
    bool died = false;
    try {
      const auto got = Spied::take(view, 2, view.slot(2).current);
      REQUIRE(got);
      Spied::open(view, *got,
                  {ARCTRACE_FORM_COMPACT, ARCTRACE_CLASS_DATA, 1, 1, 1, 1, 0, 0});
      Spied::close(view, *got);
    } catch (const Death&) {
      died = true;
    }
    CHECK(died == (SpyAtomics::operations == death + 1));
    SpyAtomics::reset(nullptr);
    DeadSlot<IpcAtomics>::clean_up(view, 2, [](uint32_t) {});
    CHECK(session.blocks_in(ARCTRACE_PHASE_OWNED) == 0);
    CHECK(view.slot(2).current == 0);
  }
}

TEST_CASE("handout: give_back makes the block free, and wakes the writers that wait") {
  TestSession session(small_buffer(384, 2));
  uint32_t& name = session.view().slot(0).current;
  const auto got = Plain::take(session.view(), 0, name);
  REQUIRE(got);
  Plain::give_back(session.view(), *got);
  CHECK(session.blocks_in(ARCTRACE_PHASE_FREE) == 2);
  CHECK(session.view().control().freed == 1);
}

TEST_CASE("handout: the header that open() writes, its magic last") {
  TestSession session(small_buffer(384, 2));
  const BufferView& view = session.view();
  SpyAtomics::reset(nullptr);
  const auto got = Spied::take(view, 0, view.slot(0).current);
  REQUIRE(got);
  arctrace_block_header& header = view.block_header(got->index);
  CHECK(header.magic == ARCTRACE_FILL);
  SpyAtomics::reset([&](uint32_t) { CHECK(header.base_ticks == 99); });
  Spied::open(view, *got,
              {ARCTRACE_FORM_FULL, ARCTRACE_CLASS_DEFINITIONS, 5, 6, 7, 8, 9, 99});
  CHECK(SpyAtomics::operations == 1);
  CHECK(header.magic == ARCTRACE_BLOCK_MAGIC);
  CHECK(header.form == ARCTRACE_FORM_FULL);
  CHECK(header.block_class == ARCTRACE_CLASS_DEFINITIONS);
  CHECK(header.writer == 5);
  CHECK(header.process == 6);
  CHECK(header.pid == 7);
  CHECK(header.tid == 8);
  CHECK(header.serial == 9);
  CHECK(header.handout == got->handout);
  CHECK(header.next == 384);  // nobody can reserve in it
}

TEST_CASE("handout: a state word that somebody damaged is left alone") {
  TestSession session(small_buffer(384, 2));
  const BufferView& view = session.view();
  const auto got = Plain::take(view, 0, view.slot(0).current);
  REQUIRE(got);
  view.block_header(got->index).state = UINT64_MAX;
  Plain::close(view, *got);
  CHECK(view.block_header(got->index).state == UINT64_MAX);
}

}  // namespace
}  // namespace arctrace::testing
