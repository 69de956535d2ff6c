// The process' table of coroutines' stacks.
#include "src/stack/made_stacks.hpp"

#include <doctest/doctest.h>

namespace arctrace::testing {
namespace {

using Found = MadeStack::Found;

constexpr uintptr_t kMadeAt = 0x10000000;

}  // namespace

TEST_CASE("made stacks: a frame is on the innermost one that has it") {
  note_made_stack(kMadeAt, kMadeAt + 0x1000);
  note_made_stack(kMadeAt + 0x400, kMadeAt + 0x800);
  const MadeStack outer =
      find_made_stack(kMadeAt + 0x1000);  // where its first frame ends
  const MadeStack inner = find_made_stack(kMadeAt + 0x500);
  CHECK(outer.found == Found::kYes);
  CHECK(inner.number == outer.number + 1);
  CHECK(find_made_stack(kMadeAt + 0x900).number == outer.number);
  CHECK(find_made_stack(kMadeAt).found == Found::kNo);
  CHECK(find_made_stack(kMadeAt + 0x1008).found == Found::kNo);
}

TEST_CASE("made stacks: a stack that is made again is another coroutine's") {
  note_made_stack(kMadeAt, kMadeAt + 0x1000);
  const uint32_t first = find_made_stack(kMadeAt + 0x800).number;
  CHECK(enter_made_stack(kMadeAt) == first);
  CHECK(find_made_stack(kMadeAt + 0x800).is_entered);
  // Whoever enters it once more does not know its frames.
  const uint32_t second = enter_made_stack(kMadeAt);
  CHECK(second != first);
  note_made_stack(kMadeAt + 0x800, kMadeAt + 0x1800);  // a part of it is enough
  CHECK(find_made_stack(kMadeAt + 0x400).found == Found::kNo);
  CHECK(find_made_stack(kMadeAt + 0x1000).number > second);
  CHECK_FALSE(find_made_stack(kMadeAt + 0x1000).is_entered);
}

TEST_CASE("made stacks: those within a range are forgotten, and no others") {
  note_made_stack(kMadeAt, kMadeAt + 0x1000);
  note_made_stack(kMadeAt + 0x1000, kMadeAt + 0x2000);
  forget_made_stacks(kMadeAt, kMadeAt + 0x1fff);
  CHECK(find_made_stack(kMadeAt + 8).found == Found::kNo);
  CHECK(find_made_stack(kMadeAt + 0x1008).found == Found::kYes);
}

TEST_CASE("made stacks: more than the table has room for") {
  constexpr uintptr_t kMadeSize = 0x1000;
  for (uintptr_t i = 0; i < 10'000; ++i) {
    note_made_stack(kMadeAt + i * kMadeSize, kMadeAt + (i + 1) * kMadeSize);
    REQUIRE(find_made_stack(kMadeAt + i * kMadeSize + 8).found == Found::kYes);
  }
  CHECK(find_made_stack(kMadeAt + 8).found == Found::kNo);
  CHECK(find_made_stack(kMadeAt + 9'000 * kMadeSize + 8).found == Found::kYes);
}

}  // namespace arctrace::testing
