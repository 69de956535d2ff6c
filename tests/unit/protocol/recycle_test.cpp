// A drained block becomes free only after no live writer names it.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "src/protocol/block_state.hpp"
#include "src/protocol/handout.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace::testing {
namespace {

using Recycling = Recycle<IpcAtomics>;

std::set<uint32_t> named(const BufferView& view) {
  std::set<uint32_t> marked;
  Recycling::mark_named(view, [&](uint32_t index) { marked.insert(index); });
  return marked;
}

TEST_CASE("recycle: what live slots name in active and held, and nothing else") {
  TestSession session(small_buffer(384, 8, 4));
  const BufferView& view = session.view();
  view.control().slot_next = 4;
  view.slot(0).lock = 100;
  view.slot(0).active[0] = 1;
  view.slot(0).active[ARCTRACE_ACTIVE_DEPTH - 1] = 2;
  view.slot(0).held[0] = 3;
  view.slot(0).held[ARCTRACE_HELD_COUNT - 1] = 4;
  view.slot(0).current = 5;  // only its owner decides about an exclusive block
  view.slot(1).lock = 101 | kOwnerDied;
  view.slot(1).active[0] = 6;
  view.slot(2).lock = 0;
  view.slot(2).active[0] = 7;
  CHECK(named(view) == std::set<uint32_t>{0, 1, 2, 3});
  view.control().slot_next = 0;  // nobody has asked for a slot
  CHECK(named(view).empty());
}

TEST_CASE("recycle: hostile names and counts mark no block that there is not") {
  TestSession session(small_buffer(384, 2, 2));
  const BufferView& view = session.view();
  view.control().slot_next = UINT32_MAX;
  CHECK(Recycling::slots_used(view) == 2);
  view.slot(0).lock = 1;
  view.slot(0).active[0] = 3;
  view.slot(0).active[1] = UINT32_MAX;
  view.slot(0).held[0] = 0;
  CHECK(named(view).empty());
}

TEST_CASE("recycle: a drained block is as new, one generation on") {
  TestSession session(small_buffer(384, 2));
  const BufferView& view = session.view();
  const std::vector<std::byte> fresh(view.block(0) + 64, view.block(0) + 384);
  const auto got = Handout<IpcAtomics>::take(view, 3, view.slot(3).current);
  REQUIRE(got);
  std::fill(view.block(0) + 64, view.block(0) + 384, std::byte{0x55});
  Handout<IpcAtomics>::close(view, *got);

  const BlockState closed = Recycling::state(view, 0);
  CHECK_FALSE(Recycling::begin_drain(view, 0, {1, 3, ARCTRACE_PHASE_CLOSED}));
  REQUIRE(Recycling::begin_drain(view, 0, closed));
  CHECK_FALSE(Recycling::begin_drain(view, 0, closed));
  Recycling::finish_drain(view, 0, 384);
  CHECK(Recycling::state(view, 0).phase == ARCTRACE_PHASE_FREE);
  CHECK(Recycling::state(view, 0).generation == 1);
  CHECK(view.block_header(0).next == 384);
  CHECK(view.control().freed == 1);
  CHECK(std::equal(fresh.begin(), fresh.end(), view.block(0) + 64));
}

}  // namespace
}  // namespace arctrace::testing
