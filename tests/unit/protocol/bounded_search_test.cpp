// How many accesses to shared memory a writer's search takes when none of many blocks
// will do; and that free blocks are found all the same.
#include <doctest/doctest.h>

#include <algorithm>

#include "src/protocol/block_state.hpp"
#include "src/protocol/handout.hpp"
#include "src/recorder/drain/drain.hpp"
#include "tests/support/test_session.hpp"
#include "tests/unit/protocol/spy_atomics.hpp"

namespace arctrace::testing {
namespace {

using Spied = Handout<SpyAtomics>;

constexpr uint32_t kManyBlocks = 20'000;
constexpr uint32_t kManySlots = 2000;

recorder::BufferOptions many_blocks(arctrace_mode mode) {
  recorder::BufferOptions options = small_buffer(384, kManyBlocks, kManySlots);
  options.mode = mode;
  return options;
}

void set_state(const BufferView& view, uint32_t index, arctrace_phase phase) {
  view.block_header(index).state = BlockState{0, 1, phase}.pack();
}

// The accesses of one take() by slot 0, and whether it got a block.
struct Search {
  uint32_t accesses;
  bool found;
};
Search search(const BufferView& view) {
  SpyAtomics::reset(nullptr);
  const bool found = Spied::take(view, 0, view.slot(0).current).has_value();
  return {SpyAtomics::operations, found};
}

// Puts a living thread of process 1 into slot 1, and threads of others into all other
// slots.
void live_everywhere(const BufferView& view) {
  view.control().slot_next = kManySlots;
  for (uint32_t i = 0; i < kManySlots; ++i) {
    view.slot(i).lock = view.slot(i).tid = 100;
    view.slot(i).process = i == 1 ? 1 : 1000;
  }
}

TEST_CASE("search: a full buffer of many blocks is not searched all round") {
  TestSession test(many_blocks(ARCTRACE_MODE_DROP));
  for (uint32_t i = 0; i < kManyBlocks; ++i)
    set_state(test.view(), i, ARCTRACE_PHASE_OWNED);
  for (int i = 0; i < 300; ++i) {
    const Search done = search(test.view());
    CHECK_FALSE(done.found);
    CHECK(done.accesses < 4 * Spied::kProbesMax);
  }
}

TEST_CASE("search: one call may look in vain, and the next ones go on") {
  TestSession test(many_blocks(ARCTRACE_MODE_DROP));
  const BufferView& view = test.view();
  for (uint32_t i = 0; i + 1 < kManyBlocks; ++i) set_state(view, i, ARCTRACE_PHASE_OWNED);
  view.control().taken = kManyBlocks - 1;
  uint32_t calls = 0;
  while (!search(view).found) {
    REQUIRE(++calls < 100);
    CHECK(Spied::may_have_more(view));
  }
  CHECK(calls == kManyBlocks / Spied::kProbesMax);
  CHECK(view.slot(0).current == kManyBlocks);
  CHECK_FALSE(search(view).found);
  CHECK_FALSE(Spied::may_have_more(view));  // all blocks are in use
}

TEST_CASE("search: a run that was in use in the last round is stepped over") {
  TestSession test(many_blocks(ARCTRACE_MODE_DROP));
  const BufferView& view = test.view();
  recorder::BusyRuns runs(view);
  for (uint32_t i = 0; i < kManyBlocks; ++i) {
    const bool is_free = i == 0 || i > 15'000;
    if (!is_free) set_state(view, i, ARCTRACE_PHASE_OWNED);
    runs.note(i, is_free);
  }
  runs.publish();
  CHECK(search(view).found);
  for (int i = 0; i < 3; ++i) {
    const Search done = search(view);
    CHECK(done.found);
    CHECK(done.accesses < 400);
    CHECK(view.slot(0).current == 15'002 + i);
  }
  // A block that is free now is not skipped.
  view.block_header(6400).state = BlockState{1, 0, ARCTRACE_PHASE_FREE}.pack();
  view.control().next = 2 * uint64_t{kManyBlocks} + 6400;
  CHECK(search(view).found);
  CHECK(view.slot(0).current == 6401);
  // An impossible number is ignored; the next one is right.
  view.block_header(64).busy_run = kManyBlocks;
  view.control().next = 3 * uint64_t{kManyBlocks} + 64;
  CHECK(search(view).found);
  CHECK(view.slot(0).current == 15'005);
  CHECK(view.control().next == 3 * uint64_t{kManyBlocks} + 15'005);
}

TEST_CASE("search: definitions of the living cost a look each") {
  TestSession test(many_blocks(ARCTRACE_MODE_OVERWRITE));
  const BufferView& view = test.view();
  live_everywhere(view);
  for (uint32_t i = 0; i < kManyBlocks; ++i) {
    set_state(view, i, ARCTRACE_PHASE_CLOSED);
    arctrace_block_header& header = view.block_header(i);
    header.form = ARCTRACE_FORM_FULL;
    header.block_class = ARCTRACE_CLASS_DEFINITIONS;
    header.process = 1;
    header.retired = 0;
    header.checked = header.living = 0;
    header.magic = ARCTRACE_BLOCK_MAGIC;
  }
  uint32_t most = 0;
  for (int i = 0; i < 20; ++i) {
    const Search done = search(view);
    CHECK_FALSE(done.found);
    most = std::max(most, done.accesses);
  }
  CHECK(most < 20 * Spied::kProbesMaxOverwriting);
}

TEST_CASE(
    "search: what needs the definitions of a process that is gone is looked for "
    "bit by bit") {
  TestSession test(many_blocks(ARCTRACE_MODE_OVERWRITE));
  const BufferView& view = test.view();
  arctrace_block_header& defined = view.block_header(5);
  // All are exclusive blocks of other processes, but the last one, and one of
  // definitions.
  for (uint32_t i = 0; i < kManyBlocks; ++i) {
    set_state(view, i, ARCTRACE_PHASE_CLOSED);
    arctrace_block_header& header = view.block_header(i);
    header.form = ARCTRACE_FORM_COMPACT;
    header.block_class = ARCTRACE_CLASS_DATA;
    header.process = i + 1 == kManyBlocks ? 1 : 2;
    header.handout = i;
    header.magic = ARCTRACE_BLOCK_MAGIC;
  }
  view.control().next = kManyBlocks;
  defined.form = ARCTRACE_FORM_FULL;
  defined.block_class = ARCTRACE_CLASS_DEFINITIONS;
  defined.process = 1;
  defined.retired = 0;
  defined.checked = defined.living = 0;
  const auto look = [&] {
    SpyAtomics::reset(nullptr);
    uint32_t searches = 10;
    const bool is_over = DefinitionsLife<SpyAtomics>::is_over(view, defined, searches);
    CHECK(SpyAtomics::operations < 2000);
    return is_over;
  };
  for (uint32_t i = 0; i < kManyBlocks / 100; ++i) CHECK_FALSE(look());
  view.block_header(kManyBlocks - 1).process = 2;  // stands for a rewritten block
  CHECK(look());
  // A block that was handed out since then needs others.
  defined.retired = 1;
  defined.checked = 0;
  view.block_header(0).process = 2;
  view.block_header(1).process = 1;
  while (!look()) REQUIRE(defined.checked < kManyBlocks);
  // A search that was begun in an earlier generation of the block stores nothing into
  // this one.
  defined.checked = 0;
  SpyAtomics::reset(
      [&](uint32_t) { defined.checked = DefinitionsLife<SpyAtomics>::unchecked(7); });
  uint32_t searches = 10;
  DefinitionsLife<SpyAtomics>::is_over(view, defined, searches);
  SpyAtomics::reset(nullptr);
  CHECK(defined.checked == 7u << 24);
}

TEST_CASE("search: the room of definitions is a count") {
  TestSession test(many_blocks(ARCTRACE_MODE_OVERWRITE));
  const BufferView& view = test.view();
  using Life = DefinitionsLife<SpyAtomics>;
  view.control().definition_blocks = kManyBlocks / 2 - 1;
  SpyAtomics::reset(nullptr);
  CHECK(Life::have_space(view));
  view.control().definition_blocks = kManyBlocks / 2;
  CHECK_FALSE(Life::have_space(view));
  view.control().definition_blocks = UINT64_MAX;
  CHECK(Life::have_space(view));
  CHECK(SpyAtomics::operations == 3);
}

}  // namespace
}  // namespace arctrace::testing
