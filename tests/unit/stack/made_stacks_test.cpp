// The process' table of coroutines' stacks.
#include "src/stack/made_stacks.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "tests/support/test_session.hpp"

namespace arctrace::testing {
namespace {

using Found = MadeStack::Found;

constexpr uintptr_t kMadeAt = 0x10000000;

// The same table as a list, without an order.
struct Model {
  struct Stack {
    uintptr_t low, high;
    uint32_t number;
  };
  std::vector<Stack> stacks;

  void note(uintptr_t low, uintptr_t high, uint32_t number) {
    std::erase_if(stacks, [&](const Stack& stack) {
      const bool is_around = stack.low <= low && high <= stack.high &&
                             (stack.low != low || stack.high != high);
      return !is_around && stack.low < high && low < stack.high;
    });
    stacks.push_back({low, high, number});
  }
  void forget(uintptr_t low, uintptr_t high) {
    std::erase_if(stacks, [&](const Stack& stack) {
      return stack.low >= low && stack.high <= high;
    });
  }
  uint32_t find(uintptr_t address) const {
    const Stack* found = nullptr;
    for (const Stack& stack : stacks) {
      if (address <= stack.low || address > stack.high) continue;
      if (found == nullptr || stack.high - stack.low < found->high - found->low) {
        found = &stack;
      }
    }
    return found == nullptr ? 0 : found->number;
  }
};

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
  const MadeStack made = find_made_stack(kMadeAt + 0x800);
  const uint32_t first = made.number;
  PendingCalls* const mine = reinterpret_cast<PendingCalls*>(8);
  CHECK(enter_made_stack(made, mine).number == first);
  CHECK(find_made_stack(kMadeAt + 0x800).is_entered);
  // A thread that enters it once more does not know its frames.
  const EnteredStack entered =
      enter_made_stack(find_made_stack(kMadeAt + 0x800), nullptr);
  const uint32_t second = entered.number;
  CHECK(second != first);
  CHECK(entered.before == mine);
  CHECK(enter_made_stack(made, mine).number == 0);
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

TEST_CASE("made stacks: one is forgotten, unless its memory is another one's by now") {
  note_made_stack(kMadeAt, kMadeAt + 0x1000);
  const MadeStack first = find_made_stack(kMadeAt + 8);
  CHECK(last_made_stack() == first.number);
  note_made_stack(kMadeAt, kMadeAt + 0x1000);
  forget_made_stack(first);
  const MadeStack second = find_made_stack(kMadeAt + 8);
  CHECK(second.number == last_made_stack());
  CHECK(second.number > first.number);
  forget_made_stack(second);
  CHECK(find_made_stack(kMadeAt + 8).found == Found::kNo);
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

TEST_CASE("made stacks: a fork child can use the table that its parent was changing") {
  std::atomic<bool> is_over = false;
  std::thread changing([&] {
    while (!is_over) note_made_stack(kMadeAt, kMadeAt + 0x100);
  });
  constexpr int kForks = 300;
  int amid_changes = 0;
  int usable = 0;
  for (int i = 0; i < kForks; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      const bool was_busy = find_made_stack(kMadeAt + 8).found == Found::kBusy;
      end_change_of_parent();
      note_made_stack(kMadeAt + 0x1000, kMadeAt + 0x2000);
      const bool is_usable = find_made_stack(kMadeAt + 0x1008).found == Found::kYes;
      _exit((was_busy ? 2 : 0) + (is_usable ? 1 : 0));
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    amid_changes += WEXITSTATUS(status) / 2;
    usable += WEXITSTATUS(status) % 2;
  }
  is_over = true;
  changing.join();
  MESSAGE("forks amid changes: ", amid_changes);
  CHECK(usable == kForks);
}

TEST_CASE("made stacks: random ones are found as in a list") {
  constexpr uintptr_t kHigh = kMadeAt + 100;
  std::mt19937_64 random(test_seed());
  const auto up_to = [&](uintptr_t end) {
    return static_cast<uintptr_t>(random() % end);
  };
  for (int round = 0; round < 200; ++round) {
    forget_made_stacks(0, UINTPTR_MAX);
    Model model;
    for (int step = 0; step < 60; ++step) {
      const uintptr_t low = kMadeAt + up_to(99);
      const uintptr_t high = low + 1 + up_to(kHigh - low);
      if (up_to(8) == 0) {
        forget_made_stacks(low, high);
        model.forget(low, high);
      } else {
        note_made_stack(low, high);
        model.note(low, high, find_made_stack(low + 1).number);
      }
      const MadeStack made = find_made_stack(kMadeAt + up_to(102));
      REQUIRE(made.from < made.to);
      for (uintptr_t address = kMadeAt; address <= kHigh + 1; ++address) {
        const uint32_t number = model.find(address);
        REQUIRE(find_made_stack(address).number == number);
        if (address > made.from && address <= made.to) REQUIRE(number == made.number);
      }
    }
  }
}

}  // namespace arctrace::testing
