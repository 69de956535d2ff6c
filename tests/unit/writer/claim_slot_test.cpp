// How a thread attaches: its slot, its identity, and remains of an earlier owner of the
// slot.
#include <arctrace/arctrace.h>
#include <doctest/doctest.h>

#include <thread>
#include <vector>

#include "src/process/process_identity.hpp"
#include "src/process/session.hpp"
#include "src/protocol/block_state.hpp"
#include "src/writer/slow_path.hpp"
#include "src/writer/thread_state.hpp"
#include "tests/support/child.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace::testing {
namespace {

TEST_CASE("attach: a slot names its owner") {
  TestSession test(small_buffer(4096, 16));
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    std::thread([&] {
      arctrace_instant(1);
      const writer::ThreadState* state = writer::thread_local_state.state;
      REQUIRE(state != nullptr);
      const arctrace_writer_slot& slot = writer::session.view.slot(state->slot.index);
      CHECK(slot.lock == static_cast<uint32_t>(gettid()));
      CHECK(slot.tid == static_cast<uint32_t>(gettid()));
      CHECK(slot.pid == static_cast<uint32_t>(getpid()));
      CHECK(slot.writer == state->slot.writer);
      CHECK(slot.process == writer::current_process(0)->id);
      CHECK(slot.start_ticks == state->slot.start_ticks);
    }).join();
  });
}

TEST_CASE("attach: without a collector too the slots of the dead serve again") {
  recorder::BufferOptions options = small_buffer(1024, 64, 2);
  options.mode = ARCTRACE_MODE_STOP;
  TestSession test(options);
  constexpr uint32_t kThreads = 10;
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    for (uint32_t i = 0; i < kThreads; ++i) {
      std::thread([i] { arctrace_instant(i); }).join();
    }
  });
  const DecodedTrace trace = test.finish();
  CHECK(joined(trace.problems) == "");
  CHECK(trace.lost() == 0);
  CHECK(trace.written() == kThreads);
}

TEST_CASE("attach: a slot that a collector is settling is not for writers") {
  TestSession test(small_buffer(1024, 16, 2));
  test.view().slot(0).lock = kBeingReaped;
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    CHECK(writer::thread_local_state.state->slot.index == 1);
    std::thread([] { arctrace_instant(1); }).join();
  });
  CHECK(test.view().slot(0).lock == kBeingReaped);
  const DecodedTrace trace = test.finish();
  CHECK(trace.lost() == 1);
  CHECK(test.view().slot(0).lock == 0);  // the next collector has reaped it
}

TEST_CASE("attach: the count of slots ever asked for does not run over") {
  TestSession test(small_buffer(1024, 64, 2));
  test.view().control().slot_next =
      UINT32_MAX - 1;  // the value after some thousand million threads
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    for (int i = 0; i < 2; ++i) std::thread([] { arctrace_instant(1); }).join();
  });
  CHECK(Recycle<IpcAtomics>::slots_used(test.view()) == 2);
  CHECK(test.finish().written() == 2);
}

TEST_CASE("attach: when all identities are given, new threads lose their records") {
  for (const bool of_threads : {false, true}) {
    CAPTURE(of_threads);
    TestSession test(small_buffer(1024, 64, 8));
    arctrace_control& control = test.view().control();
    const uint32_t last = ARCTRACE_IDENTITIES_END - 2;
    (of_threads ? control.writer_next : control.process_next) = last;
    CHECK_CHILD([&] {
      REQUIRE(arctrace_attach(test.path().c_str()) == 0);  // its main thread gets one
      for (int i = 0; i < 3; ++i) std::thread([] { arctrace_instant(1); }).join();
    });
    for (int i = 0; i < 3; ++i) {
      CHECK_CHILD([&] {
        REQUIRE(arctrace_attach(test.path().c_str()) == 0);
        arctrace_instant(1);
      });
    }
    const uint64_t recorded = of_threads ? 1 : 3 + 1;
    const uint64_t attempted = 3 + 3;
    CHECK(control.lost[ARCTRACE_LOST_IDENTITY] == attempted - recorded);
    CHECK((of_threads ? control.writer_next : control.process_next) ==
          ARCTRACE_IDENTITIES_END);
    const DecodedTrace trace = test.finish();
    CHECK(joined(trace.problems) == "");
    CHECK(trace.written() == recorded);
    CHECK(trace.lost() == attempted - recorded);
  }
}

TEST_CASE("attach: more threads than slots lose records, counted, and get one later") {
  TestSession test(small_buffer(4096, 64, 3));
  constexpr uint64_t kRecords = 5000;
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);  // takes the first slot
    std::vector<std::thread> threads;
    std::mutex wait;
    wait.lock();
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&wait] {
        arctrace_instant(1);
        const std::lock_guard until_the_end(wait);
      });
    }
    while (test.view().control().writer_next < 4) std::this_thread::yield();
    std::thread late([&] {
      for (uint64_t i = 0; i < kRecords / 2; ++i) arctrace_instant(2);
      wait.unlock();
      for (std::thread& thread : threads) thread.join();
      for (uint64_t i = 0; i < kRecords / 2; ++i) arctrace_instant(3);
    });
    late.join();
  });
  const DecodedTrace trace = test.finish();
  CHECK(joined(trace.problems) == "");
  CHECK(trace.written() + trace.lost() == kRecords + 2);
  CHECK(trace.lost() >= kRecords / 2);
  CHECK(trace.lost() < kRecords);  // the thread asked again once slots were free
  for (const DecodedRecord& lost : trace.of_type(ARCTRACE_TYPE_LOST)) {
    CHECK(lost.u32(0) == ARCTRACE_LOST_NO_SLOT);
    CHECK(lost.u32(4) == ARCTRACE_LOST_SESSION);
  }
}

TEST_CASE("attach: what an earlier owner of the slot lost is reported by the next one") {
  TestSession test(small_buffer(384, 64, 2));
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    const std::vector<std::byte> too_big(1000);
    std::thread([&] { arctrace_write(1, too_big.data(), too_big.size()); }).join();
    std::thread([] {
      arctrace_instant(1);
      CHECK(arctrace_lost(nullptr) == 0);  // the losses are not its own
    }).join();
  });
  const DecodedTrace trace = test.finish();
  const std::vector<DecodedRecord> lost = trace.of_type(ARCTRACE_TYPE_LOST);
  REQUIRE(lost.size() == 1);
  CHECK(lost[0].u32(0) == ARCTRACE_LOST_TOO_BIG);
  CHECK(lost[0].u32(4) == ARCTRACE_LOST_INHERITED);
  CHECK(lost[0].u64(8) == 1);
}

TEST_CASE(
    "attach: own losses are distinguished from those of an earlier owner of the slot") {
  for (const arctrace_scope scope : {ARCTRACE_SCOPE_THREAD, ARCTRACE_SCOPE_SHARED}) {
    recorder::BufferOptions options = small_buffer(384, 64, 2);
    options.scope = scope;
    TestSession test(options);
    CHECK_CHILD([&] {
      REQUIRE(arctrace_attach(test.path().c_str()) == 0);
      const std::vector<std::byte> too_big(1000);
      const auto lose = [&](int count) {
        for (int i = 0; i < count; ++i) {
          arctrace_write(1, too_big.data(), too_big.size());
        }
      };
      std::thread([&] { lose(1); }).join();
      std::thread([&] {
        lose(5);
        arctrace_instant(1);
        lose(1);
        arctrace_instant(1);
        arctrace_flush();
        arctrace_instant(1);
      }).join();
    });
    const DecodedTrace trace = test.finish();
    CHECK(joined(trace.problems) == "");
    uint64_t own = 0;
    uint64_t inherited = 0;
    for (const DecodedRecord& lost : trace.of_type(ARCTRACE_TYPE_LOST)) {
      (lost.u32(4) == ARCTRACE_LOST_INHERITED ? inherited : own) += lost.u64(8);
    }
    CHECK(inherited == 1);
    CHECK(own == 6);
  }
}

}  // namespace
}  // namespace arctrace::testing
