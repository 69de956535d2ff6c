// Which state belongs to a thread, also after other threads have died and the process has
// forked.
#include "src/writer/thread_state.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "src/base/raw_syscall.hpp"
#include "src/protocol/block_state.hpp"
#include "tests/support/child.hpp"

namespace arctrace::testing {
namespace {

writer::ThreadState* claim(writer::ThreadState* current = nullptr) {
  return writer::claim_thread_state(current, sys::gettid());
}

TEST_CASE("thread state: one for each living thread, the same when asked again") {
  std::set<writer::ThreadState*> states;
  writer::ThreadState* mine = claim();
  REQUIRE(mine != nullptr);
  CHECK(claim(mine) == mine);
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::mutex all_live;
  all_live.lock();
  for (int i = 0; i < 100; ++i) {  // more than one arena
    threads.emplace_back([&] {
      writer::ThreadState* state = claim();
      mutex.lock();
      states.insert(state);
      mutex.unlock();
      const std::lock_guard wait(all_live);
    });
  }
  for (size_t n = 0; n < 100; usleep(1000)) {
    const std::lock_guard lock(mutex);
    n = states.size();
  }
  all_live.unlock();
  for (std::thread& thread : threads) thread.join();
  CHECK(states.size() == 100);
  CHECK_FALSE(states.contains(mine));
  CHECK_FALSE(states.contains(nullptr));
}

TEST_CASE("thread state: a dead thread's is given to another one, without its contents") {
  CHECK_CHILD([] {
    writer::ThreadState* first = nullptr;
    std::thread([&] {
      first = claim();
      first->open.depth = 5;
      first->attached = true;
      first->block.pos = first->block.end = reinterpret_cast<std::byte*>(first);
      first->places[0].payload = writer::InPlaceRecord::kClaimed;
    }).join();
    std::thread([&] {
      writer::ThreadState* second = claim();
      CHECK(second == first);
      CHECK(second->open.depth == 0);
      CHECK_FALSE(second->attached);
      CHECK(second->block.pos == nullptr);
      CHECK(second->block.end == nullptr);
      CHECK(second->places[0].payload == writer::InPlaceRecord::kUnused);
      CHECK(is_live(second->lock));
    }).join();
  });
}

TEST_CASE("thread state: a fork child finds zeros and claims anew") {
  CHECK_CHILD([] {
    writer::ThreadState* parents = claim();
    parents->attached = true;
    parents->block.pos = reinterpret_cast<std::byte*>(parents);
    const int pid = start_child([parents] {
      CHECK(parents->block.pos == nullptr);
      CHECK_FALSE(parents->attached);
      CHECK(parents->lock == 0);
      CHECK(claim(parents) != nullptr);
    });
    CHECK(wait_for_child(pid) == "");
    CHECK(parents->attached);
    CHECK(claim(parents) == parents);
  });
}

TEST_CASE("thread state: a fork child keeps its calls, and no other thread's") {
  CHECK_CHILD([] {
    writer::ThreadState* parents = claim();
    const writer::ThreadStacks stacks = {{0x1000, 0x9000}, {}, true};
    REQUIRE(parents->calls != nullptr);
    parents->calls->push(stacks, {0x8000, 1, 2}, false);
    writer::PendingCalls* calls = parents->calls;
    writer::ThreadState* others = nullptr;
    std::mutex end;
    std::mutex begun;
    end.lock();
    begun.lock();
    std::thread other([&] {
      others = claim();
      others->calls->push(stacks, {0x7000, 1, 2}, false);
      begun.unlock();
      const std::lock_guard wait(end);
    });
    begun.lock();
    const int pid = start_child([&] {
      // A thread that the child makes before that takes neither state.
      std::thread([&] {
        writer::ThreadState* made = claim();
        CHECK(made != parents);
        CHECK(made != others);
      }).join();
      CHECK(claim(parents) == parents);
      CHECK(parents->calls == calls);
      CHECK(calls->find(0x8000) != nullptr);
      uint64_t pending = 0;
      writer::for_each_pending_calls(
          [&](writer::PendingCalls& stack) { pending += stack.count(); });
      CHECK(pending == 1);
    });
    CHECK(wait_for_child(pid) == "");
    end.unlock();
    other.join();
    CHECK(calls->count() == 1);
    // The other thread is dead: another one may be made where its stack was.
    writer::forget_dead_threads_calls();
    uint64_t pending = 0;
    writer::for_each_pending_calls(
        [&](writer::PendingCalls& stack) { pending += stack.count(); });
    CHECK(pending == 1);
  });
}

TEST_CASE(
    "thread state: while dead threads' calls are forgotten, a new one keeps its own") {
  CHECK_CHILD([] {
    std::atomic<bool> over = false;
    std::vector<std::thread> forgetting;
    for (int i = 0; i < 6; ++i) {  // more than CPUs, so that some are preempted half-way
      forgetting.emplace_back([&] {
        while (!over) writer::forget_dead_threads_calls();
      });
    }
    int lost = 0;
    for (int i = 0; i < 150; ++i) {
      std::thread([&] {
        writer::PendingCalls& calls = *claim()->calls;
        calls.push({{0x1000, 0x9000}, {}, true}, {0x8000, 1, 2}, false);
        usleep(2000);
        if (calls.find(0x8000) == nullptr) ++lost;
      }).join();
    }
    over = true;
    for (std::thread& thread : forgetting) thread.join();
    CHECK(lost == 0);
  });
}

}  // namespace
}  // namespace arctrace::testing
