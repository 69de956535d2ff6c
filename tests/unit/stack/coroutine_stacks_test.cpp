// The process' table of coroutines' stacks.
#include "src/stack/coroutine_stacks.hpp"

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

using Found = writer::CoroutineStack::Found;

constexpr uintptr_t kMadeAt = 0x10000000;

// A model of the table: a list without an order.
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
  writer::note_coroutine_stack(kMadeAt, kMadeAt + 0x1000);
  writer::note_coroutine_stack(kMadeAt + 0x400, kMadeAt + 0x800);
  const writer::CoroutineStack outer =
      writer::find_coroutine_stack(kMadeAt + 0x1000);  // the end of its first frame
  const writer::CoroutineStack inner = writer::find_coroutine_stack(kMadeAt + 0x500);
  CHECK(outer.found == Found::kYes);
  CHECK(inner.number == outer.number + 1);
  CHECK(writer::find_coroutine_stack(kMadeAt + 0x900).number == outer.number);
  CHECK(writer::find_coroutine_stack(kMadeAt).found == Found::kNo);
  CHECK(writer::find_coroutine_stack(kMadeAt + 0x1008).found == Found::kNo);
}

TEST_CASE("made stacks: a stack that is made again is another coroutine's") {
  writer::note_coroutine_stack(kMadeAt, kMadeAt + 0x1000);
  const writer::CoroutineStack made = writer::find_coroutine_stack(kMadeAt + 0x800);
  const uint32_t first = made.number;
  auto* const mine = reinterpret_cast<writer::PendingCalls*>(8);
  CHECK(writer::enter_coroutine_stack(made, mine).number == first);
  CHECK(writer::find_coroutine_stack(kMadeAt + 0x800).is_entered);
  // A thread that enters the stack again does not know its frames.
  const writer::EnteredStack entered = writer::enter_coroutine_stack(
      writer::find_coroutine_stack(kMadeAt + 0x800), nullptr);
  const uint32_t second = entered.number;
  CHECK(second != first);
  CHECK(entered.before == mine);
  CHECK(writer::enter_coroutine_stack(made, mine).number == 0);
  writer::note_coroutine_stack(kMadeAt + 0x800, kMadeAt + 0x1800);  // a part suffices
  CHECK(writer::find_coroutine_stack(kMadeAt + 0x400).found == Found::kNo);
  CHECK(writer::find_coroutine_stack(kMadeAt + 0x1000).number > second);
  CHECK_FALSE(writer::find_coroutine_stack(kMadeAt + 0x1000).is_entered);
}

TEST_CASE("made stacks: those within a range are forgotten, and no others") {
  writer::note_coroutine_stack(kMadeAt, kMadeAt + 0x1000);
  writer::note_coroutine_stack(kMadeAt + 0x1000, kMadeAt + 0x2000);
  writer::forget_coroutine_stacks(kMadeAt, kMadeAt + 0x1fff);
  CHECK(writer::find_coroutine_stack(kMadeAt + 8).found == Found::kNo);
  CHECK(writer::find_coroutine_stack(kMadeAt + 0x1008).found == Found::kYes);
}

TEST_CASE("made stacks: one is forgotten, unless its memory is another one's by now") {
  writer::note_coroutine_stack(kMadeAt, kMadeAt + 0x1000);
  const writer::CoroutineStack first = writer::find_coroutine_stack(kMadeAt + 8);
  CHECK(writer::last_coroutine_stack() == first.number);
  writer::note_coroutine_stack(kMadeAt, kMadeAt + 0x1000);
  writer::forget_coroutine_stack(first);
  const writer::CoroutineStack second = writer::find_coroutine_stack(kMadeAt + 8);
  CHECK(second.number == writer::last_coroutine_stack());
  CHECK(second.number > first.number);
  writer::forget_coroutine_stack(second);
  CHECK(writer::find_coroutine_stack(kMadeAt + 8).found == Found::kNo);
}

TEST_CASE("made stacks: more than the table has room for") {
  constexpr uintptr_t kMadeSize = 0x1000;
  for (uintptr_t i = 0; i < 10'000; ++i) {
    writer::note_coroutine_stack(kMadeAt + i * kMadeSize, kMadeAt + (i + 1) * kMadeSize);
    REQUIRE(writer::find_coroutine_stack(kMadeAt + i * kMadeSize + 8).found ==
            Found::kYes);
  }
  CHECK(writer::find_coroutine_stack(kMadeAt + 8).found == Found::kNo);
  CHECK(writer::find_coroutine_stack(kMadeAt + 9'000 * kMadeSize + 8).found ==
        Found::kYes);
}

TEST_CASE("made stacks: a fork child can use the table that its parent was changing") {
  std::atomic<bool> is_over = false;
  std::thread changing([&] {
    while (!is_over) writer::note_coroutine_stack(kMadeAt, kMadeAt + 0x100);
  });
  constexpr int kForks = 300;
  int amid_changes = 0;
  int usable = 0;
  for (int i = 0; i < kForks; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      const bool was_busy =
          writer::find_coroutine_stack(kMadeAt + 8).found == Found::kBusy;
      writer::end_change_of_parent();
      writer::note_coroutine_stack(kMadeAt + 0x1000, kMadeAt + 0x2000);
      const bool is_usable =
          writer::find_coroutine_stack(kMadeAt + 0x1008).found == Found::kYes;
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
    writer::forget_coroutine_stacks(0, UINTPTR_MAX);
    Model model;
    for (int step = 0; step < 60; ++step) {
      const uintptr_t low = kMadeAt + up_to(99);
      const uintptr_t high = low + 1 + up_to(kHigh - low);
      if (up_to(8) == 0) {
        writer::forget_coroutine_stacks(low, high);
        model.forget(low, high);
      } else {
        writer::note_coroutine_stack(low, high);
        model.note(low, high, writer::find_coroutine_stack(low + 1).number);
      }
      const writer::CoroutineStack made =
          writer::find_coroutine_stack(kMadeAt + up_to(102));
      REQUIRE(made.from < made.to);
      for (uintptr_t address = kMadeAt; address <= kHigh + 1; ++address) {
        const uint32_t number = model.find(address);
        REQUIRE(writer::find_coroutine_stack(address).number == number);
        if (address > made.from && address <= made.to) REQUIRE(number == made.number);
      }
    }
  }
}

}  // namespace arctrace::testing
