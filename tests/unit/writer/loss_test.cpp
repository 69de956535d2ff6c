// Losses are counted, and a LOST record in the next block that the writer gets counts
// each of them once.
#include "src/writer/loss.hpp"

#include <arctrace/arctrace.h>
#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include "src/protocol/losses.hpp"
#include "src/writer/record.hpp"
#include "tests/support/child.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace::testing {
namespace {

// Does what ReportedLosses::commit() does.
void mark_reported(arctrace_writer_slot& slot, const writer::Losses& losses) {
  slot.reported[losses.cause] = losses.until;
}

TEST_CASE("loss: what a LOST record could not report stays unreported") {
  arctrace_writer_slot slot{};
  writer::ThreadState state{};
  writer::count_lost(slot, state, ARCTRACE_LOST_FULL, 50);
  writer::count_lost(slot, state, ARCTRACE_LOST_FULL, 60);
  writer::count_lost(slot, state, ARCTRACE_LOST_TOO_BIG, 70);
  CHECK(state.loss.pending);
  CHECK(state.loss.since_ticks == 50);
  CHECK_FALSE(writer::report_own_losses(
      slot, state, writer::counted_losses(slot), [&](const writer::Losses& losses) {
        CHECK(losses.count == (losses.cause == ARCTRACE_LOST_FULL ? 2 : 1));
        if (losses.cause != ARCTRACE_LOST_FULL) return false;
        mark_reported(slot, losses);
        return true;
      }));
  CHECK(writer::report_own_losses(slot, state, writer::counted_losses(slot),
                                  [&](const writer::Losses& losses) {
                                    CHECK(losses.cause == ARCTRACE_LOST_TOO_BIG);
                                    CHECK(losses.count == 1);
                                    mark_reported(slot, losses);
                                    return true;
                                  }));
  CHECK(writer::report_own_losses(slot, state, writer::counted_losses(slot),
                                  [](const writer::Losses&) {
                                    FAIL("nothing is left to report");
                                    return true;
                                  }));
  for_each_unreported_loss(slot,
                           [](uint32_t, uint64_t) { FAIL("nothing is left to report"); });
}

TEST_CASE("loss: one that comes while it is being reported is reported the next time") {
  arctrace_writer_slot slot{};
  writer::ThreadState state{};
  writer::count_lost(slot, state, ARCTRACE_LOST_FULL, 1);
  writer::report_own_losses(
      slot, state, writer::counted_losses(slot), [&](const writer::Losses& losses) {
        CHECK(losses.count == 1);
        writer::count_lost(slot, state, ARCTRACE_LOST_FULL, 2);  // a signal handler's
        mark_reported(slot, losses);
        return true;
      });
  uint64_t unreported = 0;
  for_each_unreported_loss(slot, [&](uint32_t, uint64_t count) { unreported += count; });
  CHECK(unreported == 1);
}

TEST_CASE("loss: those of an earlier owner are reported first, and as its") {
  arctrace_writer_slot slot{};
  writer::ThreadState state{};
  slot.lost[ARCTRACE_LOST_FULL] = 7;
  slot.reported[ARCTRACE_LOST_FULL] = 2;
  state.loss.at_start[ARCTRACE_LOST_FULL] = 7;
  writer::count_lost(slot, state, ARCTRACE_LOST_FULL, 1);
  std::vector<std::pair<uint32_t, uint64_t>> reported;
  writer::report_own_losses(slot, state, writer::counted_losses(slot),
                            [&](const writer::Losses& losses) {
                              reported.emplace_back(losses.flags, losses.count);
                              mark_reported(slot, losses);
                              return true;
                            });
  CHECK(reported ==
        std::vector<std::pair<uint32_t, uint64_t>>{{ARCTRACE_LOST_INHERITED, 5}, {0, 1}});
}

// The slot's owner died before it could note that a LOST record counts these losses.
TEST_CASE("loss: reported by a record that is whole, but not by one in progress") {
  TestSession test(small_buffer(512, 4));
  arctrace_writer_slot& slot = test.view().slot(0);
  using Reported = ReportedLosses<IpcAtomics>;
  const auto offset = static_cast<uint64_t>(test.view().block(1) - test.view().base());
  constexpr uint32_t kWhole = ARCTRACE_WORD0(ARCTRACE_TYPE_LOST, 32);
  slot.lost[ARCTRACE_LOST_FULL] = 9;
  const auto reported_if = [&](uint32_t word0, uint64_t reporting, uint64_t until) {
    word_at(test.view().block(1)) = word0;
    slot.reporting = reporting;
    slot.reporting_until = until;
    slot.reporting_cause = ARCTRACE_LOST_FULL;
    return Reported::reported(test.view(), slot, ARCTRACE_LOST_FULL);
  };
  slot.reported[ARCTRACE_LOST_FULL] = 2;
  CHECK(reported_if(kWhole, offset, 6) == 6);
  CHECK(reported_if(kWhole, offset, 1) == 2);  // this was noted already
  CHECK(reported_if(kWhole | ARCTRACE_IN_PROGRESS, offset, 6) == 2);
  CHECK(reported_if(ARCTRACE_WORD0(ARCTRACE_TYPE_PAD, 32), offset, 6) == 2);
  CHECK(reported_if(kWhole, 0, 6) == 2);
  CHECK(reported_if(kWhole, offset, 10) == 2);  // more than were lost
  for (const uint64_t nowhere :
       {uint64_t{4}, offset + 1, test.view().geometry().total_size,
        test.view().geometry().total_size - 2, ~uint64_t{3}}) {
    CHECK(reported_if(kWhole, nowhere, 6) == 2);
  }
  CHECK(Reported::reported(test.view(), slot, ARCTRACE_LOST_TOO_BIG) == 0);
  reported_if(kWhole, offset, 6);
  Reported::update(test.view(), slot);
  CHECK(slot.reported[ARCTRACE_LOST_FULL] == 6);
  CHECK(slot.reporting == 0);
  slot.reporting_cause = ~0u;
  Reported::update(test.view(), slot);
}

// Fills the buffer with instants 1, loses some, lets the collector free space, continues
// with instants 2.
void lose_and_go_on(arctrace_scope scope, uint64_t lost) {
  recorder::BufferOptions options = small_buffer(512, 24);
  options.scope = scope;
  TestSession test(options);
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    for (int round = 0; round < 3; ++round) {
      const uint64_t before = arctrace_lost(nullptr);
      while (arctrace_lost(nullptr) < before + lost) arctrace_instant(1);
      test.drain().round();
      arctrace_instant(2);
      CHECK(arctrace_lost(nullptr) == before + lost);
    }
    // The rest of the trace comes from this process, which has the file.
    const DecodedTrace trace = test.finish();
    CHECK(joined(trace.problems) == "");
    const std::vector<DecodedRecord> reports = trace.of_type(ARCTRACE_TYPE_LOST);
    REQUIRE(reports.size() == 3);
    for (const DecodedRecord& record : reports) {
      CHECK(record.u32(0) == ARCTRACE_LOST_FULL);
      CHECK(record.u32(4) == 0);
      CHECK(record.u64(8) == lost);
      CHECK(record.u64(16) <= record.ticks);
      CHECK(record.writer == 1);
    }
    // The LOST record is in the order of time: after earlier records, before later ones.
    uint32_t lost_seen = 0;
    uint32_t twos_seen = 0;
    for (const DecodedBlock& block : trace.blocks) {
      for (const DecodedRecord& record : block.records) {
        if (record.type == ARCTRACE_TYPE_LOST) ++lost_seen;
        if (record.type != ARCTRACE_TYPE_INSTANT) continue;
        if (record.u32(0) == 2) ++twos_seen;
        CHECK(lost_seen == (record.u32(0) == 2 ? twos_seen : lost_seen));
      }
    }
    CHECK(twos_seen == 3);
  });
}

TEST_CASE(
    "loss: it is reported in the next block that is to be had, in the order of time") {
  lose_and_go_on(ARCTRACE_SCOPE_THREAD, 1);
  lose_and_go_on(ARCTRACE_SCOPE_THREAD, 1000);
  lose_and_go_on(ARCTRACE_SCOPE_SHARED, 1);
  lose_and_go_on(ARCTRACE_SCOPE_SHARED, 1000);
}

TEST_CASE("loss: a full buffer is searched once, not for every record") {
  for (const arctrace_scope scope : {ARCTRACE_SCOPE_THREAD, ARCTRACE_SCOPE_SHARED}) {
    CAPTURE(scope);
    recorder::BufferOptions options = small_buffer(384, 64);
    options.scope = scope;
    TestSession test(options);
    CHECK_CHILD([&] {
      REQUIRE(arctrace_attach(test.path().c_str()) == 0);
      while (arctrace_lost(nullptr) < 3) arctrace_instant(1);
      arctrace_define_name("defined when there is no room for it");
      arctrace_instant(1);
      const uint64_t handouts = test.view().control().next;
      for (int i = 0; i < 1000; ++i) arctrace_instant(1);
      const writer::WriterCall interrupted;
      for (int i = 0; i < 1000; ++i) arctrace_instant(1);
      CHECK(test.view().control().next - handouts < 4 * 64);
      CHECK(arctrace_lost(nullptr) >= 2000);
    });
  }
}

TEST_CASE("loss: a report in the shared scope keeps no hold on the block") {
  recorder::BufferOptions options = small_buffer(1024, 32);
  options.scope = ARCTRACE_SCOPE_SHARED;
  TestSession test(options);
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    const std::vector<std::byte> too_big(2000);
    arctrace_write(1, too_big.data(), too_big.size());
    arctrace_write(1, too_big.data(), 4);  // a LOST record precedes it
    const arctrace_writer_slot& slot =
        test.view().slot(writer::thread_local_state.state->slot.index);
    CHECK(slot.reported[ARCTRACE_LOST_TOO_BIG] == 1);
    for (const uint32_t name : slot.active) CHECK(name == 0);
  });
}

TEST_CASE("loss: no room at all") {
  for (const arctrace_scope scope : {ARCTRACE_SCOPE_THREAD, ARCTRACE_SCOPE_SHARED}) {
    CAPTURE(scope);
    recorder::BufferOptions options = small_buffer(384, 2);
    options.scope = scope;
    TestSession test(options);
    constexpr uint64_t kAttempts = 500;
    CHECK_CHILD([&] {
      REQUIRE(arctrace_attach(test.path().c_str()) == 0);
      for (uint64_t i = 0; i < kAttempts; ++i) arctrace_instant(1);
    });
    const DecodedTrace trace = test.finish();
    CHECK(joined(trace.problems) == "");
    CHECK(trace.written() + trace.lost() == kAttempts);
  }
}

}  // namespace
}  // namespace arctrace::testing
