// A thread's pending calls: which of them end by a return, a jump or a signal's stack.
#include <doctest/doctest.h>

#include <memory>

#include "src/stack/open_calls.hpp"

namespace arctrace::testing {
namespace {

constexpr writer::ThreadStacks kStacks = {{0x1000, 0x9000}, {0x2000, 0x3000}, true};
constexpr uintptr_t kElsewhere = 0x100000;  // on a coroutine's stack

struct Calls {
  std::unique_ptr<writer::PendingCalls> stack = std::make_unique<writer::PendingCalls>();

  Calls() { stack->begin_use(); }
  bool push(uintptr_t slot, bool inside = false) {
    return stack->push(kStacks, {slot, slot + 1, slot + 2}, inside);
  }
  void end(uintptr_t slot) {
    REQUIRE(stack->find(slot) != nullptr);
    CHECK(stack->find(slot)->return_address == slot + 1);
    stack->drop(kStacks, slot);
  }
};

TEST_CASE("pending calls: calls end from the inside out") {
  Calls calls;
  for (uintptr_t slot = 0x8000; slot > 0x7000; slot -= 0x100) calls.push(slot);
  CHECK(calls.stack->count() == 16);
  for (uintptr_t slot = 0x7100; slot <= 0x8000; slot += 0x100) {
    CHECK(calls.stack->only_top(slot) == calls.stack->find(slot));
    calls.end(slot);
  }
  CHECK(calls.stack->count() == 0);
  CHECK(calls.stack->find(0x8000) == nullptr);
}

TEST_CASE("pending calls: a frame that ends where the signal stack begins is not on it") {
  using Which = writer::ThreadStacks::Which;
  CHECK(kStacks.which(0x2000) == Which::kOwn);
  CHECK(kStacks.which(0x2008) == Which::kSignal);
  CHECK(kStacks.which(0x3000) == Which::kSignal);
  CHECK(kStacks.which(0x9000) == Which::kOwn);
  CHECK(kStacks.which(0x9008) == Which::kUnknown);
}

TEST_CASE("pending calls: a call drops those that were jumped out of") {
  Calls calls;
  calls.push(0x8000);
  calls.push(0x7000);
  calls.push(0x6000);
  calls.push(0x7500);  // above two of them
  CHECK(calls.stack->count() == 2);
  calls.push(0x7500);  // in the same slot, so the former call is dropped
  CHECK(calls.stack->count() == 2);
  calls.push(0x6000);
  calls.end(0x8000);  // an exit drops calls, too
  CHECK(calls.stack->count() == 0);
}

// A call uses the slot of another one that was not dropped, because a coroutine's call is
// between them.
struct SlotUsedTwice : Calls {
  static constexpr uintptr_t kSlot = 0x6000;

  SlotUsedTwice() {
    push(0x8000);
    stack->push(kStacks, {kSlot, 1, 1}, false);
    push(kElsewhere);
    stack->push(kStacks, {kSlot, 2, 2}, false);
    REQUIRE(stack->count() == 4);
  }
  void check_left() {
    CHECK(stack->find(kSlot) == nullptr);
    REQUIRE(stack->abandoned.find(kSlot) != nullptr);
    CHECK(stack->abandoned.find(kSlot)->return_address == 2);
  }
};

TEST_CASE("pending calls: a slot that was used twice belongs to the later call") {
  SlotUsedTwice calls;
  SUBCASE("if both seem to be left by a return") {
    calls.end(0x8000);
    calls.check_left();
  }
  SUBCASE("if only the later one seems to be left by a call") {
    calls.push(0x7000);
    calls.check_left();
  }
}

TEST_CASE("pending calls: of those that end with a jump the first is kept") {
  Calls calls;
  calls.push(0x8000);
  calls.stack->push(kStacks, {0x6000, 1, 11}, false);
  calls.stack->push(kStacks, {0x6000, 1, 12}, true);
  calls.push(0x7000);
  REQUIRE(calls.stack->abandoned.find(0x6000) != nullptr);
  CHECK(calls.stack->abandoned.find(0x6000)->key == 11);
}

TEST_CASE("pending calls: those that seem to be left can be found by their slot") {
  Calls calls;
  calls.push(0x8000);
  calls.push(0x6000);
  calls.push(0x7000);  // a coroutine's, in a local array of the first one
  CHECK(calls.stack->find(0x6000) == nullptr);
  REQUIRE(calls.stack->abandoned.find(0x6000) != nullptr);
  CHECK(calls.stack->abandoned.find(0x6000)->return_address == 0x6001);
  calls.push(0x6000);
  calls.end(0x8000);
  CHECK(calls.stack->count() == 0);
  CHECK(calls.stack->abandoned.find(0x7000)->return_address == 0x7001);
  calls.stack->drop_own();
  CHECK(calls.stack->abandoned.find(0x7000) == nullptr);
  CHECK_FALSE(calls.stack->has_calls());
}

TEST_CASE("pending calls: those on a coroutine's stack go with it to another thread") {
  constexpr writer::StackRange kStack = {kElsewhere, kElsewhere + 0x1000};
  constexpr uintptr_t kSlot = kElsewhere + 0x300;
  Calls before;
  before.push(0x8000);
  before.push(kElsewhere + 0x800);
  before.push(kElsewhere + 0x400);
  before.push(kSlot);
  before.push(kElsewhere + 0x100);  // abandoned
  Calls after;
  after.stack->push(kStacks, {kElsewhere + 0x400, 7, 7}, false);  // abandoned there
  SUBCASE("that goes on where a call ended with a jump") {}
  SUBCASE("that goes on with another call in the slot of one that was left") {
    before.stack->find(kSlot)->return_address = 7;
    after.push(kSlot);
  }
  after.stack->take_over(*before.stack, kStack, kSlot + sizeof(uintptr_t));
  CHECK(before.stack->find(kElsewhere + 0x400) == nullptr);
  CHECK(before.stack->find(0x8000) != nullptr);
  CHECK(after.stack->find(kElsewhere + 0x100) == nullptr);
  after.end(kSlot);
  after.end(kElsewhere + 0x400);
  after.end(kElsewhere + 0x800);
}

TEST_CASE("pending calls: of those that were left, the overwritten ones make room") {
  constexpr uintptr_t kReturns = 0x1234;
  static uintptr_t memory[writer::AbandonedCalls::kEntries + 1];
  const auto slot = [](size_t i) { return reinterpret_cast<uintptr_t>(&memory[i]); };
  const writer::StackRange own = {slot(0), slot(writer::AbandonedCalls::kEntries + 1)};
  const auto abandoned = std::make_unique<writer::AbandonedCalls>();
  writer::set_stub_block(kReturns & ~(writer::kStubBlockBytes - 1));
  for (uintptr_t& word : memory) word = kReturns;
  for (size_t i = 0; i < writer::AbandonedCalls::kEntries; ++i)
    abandoned->add(own, {slot(i), i, 0});
  memory[7] = 1;
  abandoned->add(own, {slot(writer::AbandonedCalls::kEntries), 77,
                       0});  // its hash is that of entry 0
  memory[5] = 1;
  abandoned->add(own, {slot(5), 0, 0});  // it was overwritten before it was abandoned
  writer::set_stub_block(0);
  CHECK(abandoned->find(slot(writer::AbandonedCalls::kEntries))->return_address == 77);
  CHECK(abandoned->find(slot(7)) == nullptr);
  CHECK(abandoned->find(slot(5))->return_address == 5);
  for (size_t i = 0; i < writer::AbandonedCalls::kEntries; ++i) {
    if (i != 7) REQUIRE(abandoned->find(slot(i)) != nullptr);
  }
}

TEST_CASE("pending calls: a return to the thread's own stack leaves the signal's") {
  Calls calls;
  calls.push(0x8000);
  calls.push(0x2800);  // on the signal stack
  calls.push(0x1800);  // own, though further down
  CHECK(calls.stack->count() == 2);
  CHECK(calls.stack->find(0x2800) == nullptr);
}

TEST_CASE("pending calls: a call in the slot of one that waits has both end at once") {
  Calls calls;
  calls.push(0x8000);
  calls.push(0x7000);
  calls.push(0x7000, true);
  CHECK(calls.stack->count() == 3);
  CHECK(calls.stack->only_top(0x7000) == nullptr);
  int seen = 0;
  calls.stack->for_each_at(0x7000, [&](const writer::PendingCall&) { ++seen; });
  CHECK(seen == 2);
  calls.end(0x7000);
  CHECK(calls.stack->count() == 1);
}

TEST_CASE("pending calls: a coroutine's calls stay while others come and go") {
  Calls calls;
  calls.push(0x8000);
  calls.push(kElsewhere);
  calls.push(0x7000);
  calls.end(0x7000);
  calls.end(0x8000);  // the coroutine is suspended inside its call
  REQUIRE(calls.stack->find(kElsewhere) != nullptr);
  calls.push(0x8800);
  CHECK(calls.stack->find(kElsewhere) != nullptr);
  calls.end(kElsewhere);
  calls.end(0x8800);
  CHECK(calls.stack->count() == 0);
}

TEST_CASE("pending calls: a dead thread's calls go, those of coroutines stay") {
  Calls calls;
  calls.push(0x8000);
  calls.push(kElsewhere);
  calls.push(0x7000);
  SUBCASE("its stack is known") {
    calls.stack->own = kStacks.own;
    calls.stack->drop_own();
    CHECK(calls.stack->find(0x8000) == nullptr);
    CHECK(calls.stack->find(0x7000) == nullptr);
    calls.end(kElsewhere);
  }
  SUBCASE("it is not") { calls.stack->drop_own(); }
  CHECK(calls.stack->count() == 0);
}

TEST_CASE("pending calls: full, it refuses calls; abandoned coroutines' make room") {
  Calls calls;
  for (uintptr_t i = 0; i < writer::PendingCalls::kMaxCalls; ++i) {
    CHECK(calls.push(kElsewhere - 16 * i));
  }
  CHECK_FALSE(calls.push(0x8000));
  calls.end(kElsewhere);
  CHECK(calls.push(0x8000));
  CHECK(calls.stack->count() == writer::PendingCalls::kMaxCalls);
  // These use the same slots once more, and return elsewhere.
  Calls others;
  for (uintptr_t i = 0; i < writer::PendingCalls::kMaxCalls; ++i) {
    const uintptr_t slot = kElsewhere + 16 * (i % 8);
    CHECK(others.stack->push(kStacks, {slot, i, 0}, true));
  }
  CHECK(others.stack->push(kStacks, {0x8000, 1, 0}, false));
  CHECK(others.stack->count() == 9);
  CHECK(others.stack->find(kElsewhere)->return_address ==
        writer::PendingCalls::kMaxCalls - 8);
}

}  // namespace
}  // namespace arctrace::testing
