// How the slot of a dead writer is reaped.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "src/protocol/block_state.hpp"
#include "src/protocol/handout.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace::testing {
namespace {

std::vector<uint32_t> clean_up(const BufferView& view, uint32_t slot) {
  std::vector<uint32_t> closed;
  DeadSlot<IpcAtomics>::clean_up(view, slot,
                                 [&](uint32_t index) { closed.push_back(index); });
  return closed;
}

bool names_nothing(const arctrace_writer_slot& slot) {
  const auto is_zero = [](uint32_t name) { return name == 0; };
  return slot.current == 0 && std::all_of(slot.active, std::end(slot.active), is_zero) &&
         std::all_of(slot.held, std::end(slot.held), is_zero);
}

TEST_CASE("dead slot: what it owned is closed, once, and every name is cleared") {
  TestSession session(small_buffer(384, 6));
  const BufferView& view = session.view();
  arctrace_writer_slot& slot = view.slot(2);
  const auto current = Handout<IpcAtomics>::take(view, 2, slot.current);
  const auto opening = Handout<IpcAtomics>::take(view, 2, slot.active[3]);
  REQUIRE(current);
  REQUIRE(opening);
  slot.held[1] = current->index + 1;
  CHECK(clean_up(view, 2) == std::vector<uint32_t>{0, 1});
  CHECK(names_nothing(slot));
  CHECK(session.blocks_in(ARCTRACE_PHASE_CLOSED) == 2);
  CHECK(clean_up(view, 2).empty());
}

TEST_CASE("dead slot: blocks of others that it names are not touched") {
  TestSession session(small_buffer(384, 6));
  const BufferView& view = session.view();
  arctrace_writer_slot& dead = view.slot(1);
  const auto other = Handout<IpcAtomics>::take(view, 2, view.slot(2).current);
  REQUIRE(other);
  dead.current = other->index + 1;  // it named that block, but another writer took it
  view.block_header(1).state = BlockState{0, 1, ARCTRACE_PHASE_SHARED}.pack();
  dead.active[0] = 2;
  view.block_header(2).state = BlockState{0, 1, ARCTRACE_PHASE_DRAINING}.pack();
  dead.active[1] = 3;
  dead.active[2] = UINT32_MAX;  // hostile
  dead.active[3] = 7;           // one too many
  CHECK(clean_up(view, 1).empty());
  CHECK(names_nothing(dead));
  CHECK(Recycle<IpcAtomics>::state(view, 0).phase == ARCTRACE_PHASE_OWNED);
  CHECK(Recycle<IpcAtomics>::state(view, 1).phase == ARCTRACE_PHASE_SHARED);
  CHECK(Recycle<IpcAtomics>::state(view, 2).phase == ARCTRACE_PHASE_DRAINING);
}

}  // namespace
}  // namespace arctrace::testing
