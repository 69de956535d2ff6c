// The content of a live session's screen, without a screen.
#include "reader/live/live_model.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/trace_builder.hpp"
#include "tests/unit/live/changing_input.hpp"

namespace arctrace::testing {
namespace {

using reader::LiveRow;
using reader::LiveSort;
using reader::LiveTable;

constexpr uint64_t kShort = 0x2000, kLong = 0x1000;
constexpr int64_t kWindowNs = 5'000'000'000;

std::vector<std::string> names_of(const std::vector<LiveRow>& rows) {
  std::vector<std::string> names;
  for (const LiveRow& row : rows) names.push_back(row.name);
  return names;
}

TEST_CASE("what is kept of very many functions and of a very long name is bounded") {
  constexpr uint64_t kFunctions = reader::LiveModel::kRowsKept + 100;
  BufferBuilder buffer(256u << 10);
  buffer.slots[0].lock = 100;
  buffer.slots[0].writer = 1;
  const std::string long_name(50'000, 'x');
  buffer.block(0,
               BlockBuilder::shared(0, 0, ARCTRACE_CLASS_DEFINITIONS)
                   .add_full(ARCTRACE_TYPE_PROCESS, 1, 0, process_body({}))
                   .add_full(ARCTRACE_TYPE_THREAD, 1, 0, thread_body(1, 1, 100, "many"))
                   .add_full(ARCTRACE_TYPE_STRING, 1, 0, string_body(1, 1, long_name)),
               ARCTRACE_PHASE_SHARED);
  BlockBuilder calls = BlockBuilder::exclusive(1, 0, 1, 10).stack(10, {});
  uint64_t now = 20;
  for (uint64_t i = 0; i < kFunctions; ++i) {
    calls.enter(now, 0x10000 + i).exit(now + 1 + i);
    now += 1 + i;
  }
  calls.enter(now, ARCTRACE_FRAME_NAME_BIT | 1).exit(now + 100'000);
  buffer.block(1, calls, ARCTRACE_PHASE_OWNED);
  const auto bytes = std::make_shared<std::vector<std::byte>>(buffer.image());
  absl::StatusOr<reader::SessionCopy> copy =
      reader::SessionCopy::create(std::make_unique<ChangingInput>(bytes));
  REQUIRE(copy.ok());
  reader::Symbolizer symbolizer;
  reader::LiveReader reader(*std::move(copy), symbolizer, true);
  reader::LiveModel model(kWindowNs);
  REQUIRE(reader.tick(model).ok());
  for (const LiveTable table : {LiveTable::kFunctions, LiveTable::kPaths}) {
    const std::vector<LiveRow> rows = model.rows(table, LiveSort::kSelf, "");
    REQUIRE(rows.size() == reader::LiveModel::kRowsKept);
    // The rows with the most time remain.
    CHECK(rows[0].name == std::string(reader::LiveModel::kNameKept, 'x'));
    CHECK(rows[1].sums.self_ns == kFunctions);
    CHECK(rows.back().sums.self_ns > 1);
  }
}

TEST_CASE("rows: sums, order, filter, paths, history; a pause; threads and counters") {
  BufferBuilder buffer;
  buffer.slots[0].lock = 100;
  buffer.slots[0].writer = 1;
  buffer.slots[0].written = 8;
  buffer.slots[0].lost[ARCTRACE_LOST_FULL] = 3;
  buffer.block(
      0,
      BlockBuilder::shared(0, 0, ARCTRACE_CLASS_DEFINITIONS)
          .add_full(ARCTRACE_TYPE_PROCESS, 1, 0, process_body({}))
          .add_full(ARCTRACE_TYPE_THREAD, 1, 0, thread_body(1, 1, 100, "evil\x1b[2J")),
      ARCTRACE_PHASE_SHARED);
  BlockBuilder calls = BlockBuilder::exclusive(1, 0, 1, 10).stack(10, {});
  calls.enter(20, kShort).enter(30, kLong).exit(330).exit(340);
  calls.enter(340, kShort).exit(350).enter(360, kShort);
  buffer.block(1, calls, ARCTRACE_PHASE_OWNED);
  const auto bytes = std::make_shared<std::vector<std::byte>>(buffer.image());
  absl::StatusOr<reader::SessionCopy> copy =
      reader::SessionCopy::create(std::make_unique<ChangingInput>(bytes));
  REQUIRE(copy.ok());
  reader::Symbolizer symbolizer;
  reader::LiveReader reader(*std::move(copy), symbolizer, true);
  reader::LiveModel model(kWindowNs);
  REQUIRE(reader.tick(model).ok());
  model.set_buffer(reader.copy().buffer(), 8);

  using Names = std::vector<std::string>;
  const auto rows = [&](LiveTable table, LiveSort sort, const char* filter = "") {
    return model.rows(table, sort, filter);
  };
  const auto by_calls = rows(LiveTable::kFunctions, LiveSort::kCalls);
  CHECK(names_of(by_calls) == Names{"0x2000", "0x1000"});
  CHECK(by_calls[0].sums.calls == 3);
  CHECK(by_calls[1].sums.self_ns == 300);
  CHECK(by_calls[1].history == std::vector<uint64_t>{300});
  // The last call of 0x2000 is still open.
  CHECK(names_of(rows(LiveTable::kFunctions, LiveSort::kSelf)) ==
        Names{"0x2000", "0x1000"});
  CHECK(names_of(rows(LiveTable::kFunctions, LiveSort::kName)) ==
        Names{"0x1000", "0x2000"});
  CHECK(names_of(rows(LiveTable::kFunctions, LiveSort::kName, "X1")) == Names{"0x1000"});
  CHECK(names_of(rows(LiveTable::kPaths, LiveSort::kName)) ==
        Names{"0x2000", "0x2000 > 0x1000"});

  REQUIRE(model.threads().size() == 1);
  CHECK(model.threads()[0].title == "evil\\x1b[2J 100/100");
  REQUIRE(model.threads()[0].frames.size() == 1);
  CHECK(model.threads()[0].frames[0].name == "0x2000");
  CHECK(model.counters().records == 8);
  CHECK(model.counters().lost == 3);
  CHECK(model.counters().writers == 1);
  CHECK(model.counters().blocks_used == 2);

  model.set_paused(true);
  REQUIRE(reader.tick(model).ok());
  CHECK(rows(LiveTable::kFunctions, LiveSort::kCalls)[0].history.size() == 1);
  model.set_paused(false);
  REQUIRE(reader.tick(model).ok());
  // These rows have only the last tick's time, in which nothing was called, but one call
  // continued.
  const auto later = rows(LiveTable::kFunctions, LiveSort::kSelf);
  REQUIRE_FALSE(later.empty());
  CHECK(later[0].history.size() == 2);
  CHECK(later[0].name == "0x2000");
  // A call that continues is not counted again.
  CHECK(later[0].sums.calls == 3);

  const auto through = [&](const char* function) {
    return names_of(model.rows(LiveTable::kPaths, LiveSort::kName, "", function));
  };
  CHECK(through("0x1000") == Names{"0x2000 > 0x1000"});
  CHECK(through("0x2000") == Names{"0x2000", "0x2000 > 0x1000"});
  CHECK(through("0x200") == Names{});
}

TEST_CASE("marks: the newest, with their own times; those of a pause come after it") {
  constexpr size_t kOld = reader::LiveModel::kMarksKept + 3;
  BufferBuilder buffer;
  buffer.slots[0].lock = 100;
  buffer.slots[0].writer = 1;
  buffer.block(0,
               BlockBuilder::shared(0, 0, ARCTRACE_CLASS_DEFINITIONS)
                   .add_full(ARCTRACE_TYPE_PROCESS, 1, 0, process_body({}))
                   .add_full(ARCTRACE_TYPE_THREAD, 1, 0, thread_body(1, 1, 100, "one")),
               ARCTRACE_PHASE_SHARED);
  BlockBuilder marks = BlockBuilder::exclusive(1, 0, 1, 10).stack(10, {});
  for (size_t i = 0; i < kOld; ++i) {
    marks.add(ARCTRACE_TYPE_MARK, 100 * i + 100, text_body("old " + std::to_string(i)));
  }
  buffer.block(1, marks, ARCTRACE_PHASE_OWNED);
  const auto bytes = std::make_shared<std::vector<std::byte>>(buffer.image());
  absl::StatusOr<reader::SessionCopy> copy =
      reader::SessionCopy::create(std::make_unique<ChangingInput>(bytes));
  REQUIRE(copy.ok());
  reader::Symbolizer symbolizer;
  // The reader shows only marks from now on: these were there before.
  reader::LiveReader reader(*std::move(copy), symbolizer, false);
  reader::LiveModel model(kWindowNs);
  REQUIRE(reader.tick(model).ok());
  CHECK(model.mark_count() == kOld);
  REQUIRE(model.marks().size() == reader::LiveModel::kMarksKept);
  CHECK(model.marks().front().text == "old 3");
  CHECK(model.marks().back().text == "old " + std::to_string(kOld - 1));
  const int64_t last_ns = model.marks().back().time_ns;
  CHECK(last_ns - model.marks().front().time_ns ==
        static_cast<int64_t>(100 * (reader::LiveModel::kMarksKept - 1)));
  CHECK(model.now_ns() > last_ns);

  model.set_paused(true);
  marks.add(ARCTRACE_TYPE_MARK, 5000, text_body("evil\x1b[2J"));
  buffer.block(1, marks, ARCTRACE_PHASE_OWNED);
  *bytes = buffer.image();
  REQUIRE(reader.tick(model).ok());
  CHECK(model.mark_count() == kOld);
  CHECK(model.marks().back().time_ns == last_ns);
  model.set_paused(false);
  REQUIRE(reader.tick(model).ok());
  CHECK(model.mark_count() == kOld + 1);
  CHECK(model.marks().size() == reader::LiveModel::kMarksKept);
  CHECK(model.marks().back().text == "evil\\x1b[2J");
}

TEST_CASE("what is left out: classes that are off, and the record filter") {
  reader::LiveModel model(kWindowNs);
  reader::BufferState state;
  state.gate = ARCTRACE_GATE_ALL;
  model.set_buffer(state, 8);
  CHECK_FALSE(model.left_out().is_all);
  CHECK(model.left_out().classes.empty());
  CHECK(model.left_out().live_filter.empty());
  CHECK(model.left_out().record_filter.empty());
  state.gate = ARCTRACE_GATE_FUNCTIONS | ARCTRACE_GATE_EVENTS;
  state.filter = {"-mem_*", "+git_\x1b*"};
  state.record_filter = {"event:db.*", "not:\x1b[2J"};
  model.set_buffer(state, 8);
  CHECK(model.left_out().classes == "marks, kernel");
  CHECK(model.left_out().live_filter == "-N mem_* -F git_\\x1b*");
  CHECK(model.left_out().record_filter ==
        std::vector<std::string>{"event:db.*", "not:\\x1b[2J"});
  state.gate = 0;
  model.set_buffer(state, 8);
  CHECK(model.left_out().is_all);
}

}  // namespace
}  // namespace arctrace::testing
