// The copy of a live session: the new records of each update.
#include "reader/live/session_copy.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <utility>
#include <vector>

#include "src/base/untrusted_bytes.hpp"
#include "src/protocol/control_events.hpp"
#include "tests/support/trace_builder.hpp"
#include "tests/unit/live/changing_input.hpp"

namespace arctrace::testing {
namespace {

BlockBuilder one_thread(uint64_t handout) {
  return BlockBuilder::shared(handout, 0, ARCTRACE_CLASS_DEFINITIONS)
      .add_full(ARCTRACE_TYPE_PROCESS, 1, 0, process_body({}))
      .add_full(ARCTRACE_TYPE_THREAD, 1, 0, thread_body(1, 1, 100, "one"));
}

// A session of one thread, that a test changes.
struct CopiedSession {
  CopiedSession()
      : copy(
            *reader::SessionCopy::create(std::make_unique<ChangingInput>(buffer_bytes))) {
    buffer.slots[0].lock = 100;
    buffer.slots[0].writer = 1;
    buffer.block(0, one_thread(0), ARCTRACE_PHASE_SHARED);
  }

  void update() {
    *buffer_bytes = buffer.image();
    REQUIRE(copy.update().ok());
  }
  // The keys of the functions whose entries are new.
  std::vector<uint64_t> new_entries() {
    std::vector<uint64_t> keys;
    absl::StatusOr<reader::Trace> trace = copy.trace();
    REQUIRE(trace.ok());
    last_after_gap = false;
    REQUIRE(trace
                ->read([&](const reader::Record& record) {
                  const reader::SessionCopy::Taken taken = copy.take(record);
                  if (!taken.is_new) return true;
                  last_after_gap |= taken.after_gap;
                  if (record.type == ARCTRACE_TYPE_ENTER) {
                    keys.push_back(load_part_untrusted<uint64_t>(record.body));
                  }
                  return true;
                })
                .ok());
    return keys;
  }

  using Keys = std::vector<uint64_t>;

  BufferBuilder buffer;
  ChangingInput::Bytes buffer_bytes =
      std::make_shared<std::vector<std::byte>>(buffer.image());
  reader::SessionCopy copy;
  bool last_after_gap = false;
};

BlockBuilder entries(uint64_t serial, uint64_t handout,
                     const std::vector<uint64_t>& keys) {
  BlockBuilder block = BlockBuilder::exclusive(1, serial, handout, 10).stack(10, {});
  for (const uint64_t key : keys) block.enter(10 + key, key);
  return block;
}

TEST_CASE("each record is new once, also those of a block that grows") {
  CopiedSession session;
  session.buffer.block(1, entries(0, 1, {1, 2}), ARCTRACE_PHASE_OWNED);
  session.update();
  CHECK(session.new_entries() == CopiedSession::Keys{1, 2});
  CHECK(session.new_entries().empty());
  session.buffer.block(1, entries(0, 1, {1, 2, 3}), ARCTRACE_PHASE_OWNED);
  session.update();
  CHECK(session.new_entries() == CopiedSession::Keys{3});
}

TEST_CASE("a block that was drained is known from the collector's file") {
  CopiedSession session;
  session.buffer.block(1, entries(0, 1, {1}), ARCTRACE_PHASE_OWNED);
  const auto file = std::make_shared<std::vector<std::byte>>(FileBuilder().file());
  session.copy.add_file(std::make_unique<ChangingInput>(file), false);
  session.update();
  CHECK(session.new_entries() == CopiedSession::Keys{1});

  session.buffer.blocks[1] = {};  // the block is free again
  *file = FileBuilder().block(entries(0, 1, {1, 2}), 0, 1).file();
  session.update();
  CHECK(session.new_entries() == CopiedSession::Keys{2});
  // A chunk that was partly written counts once all of it is there.
  std::vector<std::byte> longer = FileBuilder()
                                      .block(entries(0, 1, {1, 2}), 0, 1)
                                      .block(entries(1, 2, {3}), 0, 2)
                                      .file();
  *file = {longer.begin(), longer.end() - 8};
  session.update();
  CHECK(session.new_entries().empty());
  *file = longer;
  session.update();
  CHECK(session.new_entries() == CopiedSession::Keys{3});
  CHECK(session.copy.missed_blocks() == 0);
}

// A name is defined after the buffer's definitions were copied and before its data reach
// the file, which therefore has the data first.
TEST_CASE("what came to the file meanwhile has its definitions") {
  bool leaves_buffer = false;
  SUBCASE("the block with the definition is in the buffer") {}
  SUBCASE("it has left the buffer since the file was read") { leaves_buffer = true; }
  CAPTURE(leaves_buffer);

  CopiedSession session;
  FileBuilder builder;
  const auto file = std::make_shared<std::vector<std::byte>>(
      builder.block(entries(0, 1, {1}), 0, 1).file());
  bool has_changed = false;
  const auto define_at_end = [&](size_t read) {
    if (read != 0 || std::exchange(has_changed, true)) return;
    const BlockBuilder definitions =
        one_thread(0).add_full(ARCTRACE_TYPE_STRING, 1, 0, string_body(1, 5, "late"));
    if (leaves_buffer) {
      session.buffer.blocks[0] = {};
      *file = builder.block(definitions, 0, 0).file();
    } else {
      session.buffer.block(0, definitions, ARCTRACE_PHASE_SHARED);
    }
    *session.buffer_bytes = session.buffer.image();
  };
  session.copy.add_file(std::make_unique<ChangingInput>(file, define_at_end), true);
  session.update();
  CHECK(has_changed);
  CHECK(session.new_entries() == CopiedSession::Keys{1});
  absl::StatusOr<reader::Trace> trace = session.copy.trace();
  REQUIRE(trace.ok());
  CHECK(trace->definitions().name(0, 5) == "late");
}

TEST_CASE("what a file had before it was looked at is not new") {
  CopiedSession session;
  const auto file = std::make_shared<std::vector<std::byte>>(
      FileBuilder().block(entries(0, 1, {1}), 0, 1).file());
  session.copy.add_file(std::make_unique<ChangingInput>(file), false);
  session.update();
  CHECK(session.new_entries().empty());
  *file = FileBuilder()
              .block(entries(0, 1, {1}), 0, 1)
              .block(entries(1, 2, {2}), 0, 2)
              .file();
  session.update();
  CHECK(session.new_entries() == CopiedSession::Keys{2});
}

TEST_CASE("blocks that were overwritten leave a gap, those that were forgotten none") {
  CopiedSession session;
  session.buffer.block(1, entries(0, 1, {1}), ARCTRACE_PHASE_CLOSED);
  for (int i = 0; i < 4; ++i) session.update();
  CHECK(session.new_entries() == CopiedSession::Keys{1});
  session.copy.forget(UINT64_MAX);
  session.buffer.block(2, entries(1, 2, {2}), ARCTRACE_PHASE_CLOSED);
  session.update();
  CHECK(session.new_entries() == CopiedSession::Keys{2});
  CHECK_FALSE(session.last_after_gap);
  session.buffer.block(3, entries(5, 11, {3}), ARCTRACE_PHASE_OWNED);
  session.update();
  CHECK(session.new_entries() == CopiedSession::Keys{3});
  CHECK(session.last_after_gap);
  CHECK(session.copy.missed_blocks() == 3);
}

TEST_CASE("a forgotten block is remembered for as long as it can come again") {
  CopiedSession session;
  session.buffer.block(1, entries(0, 1, {1}), ARCTRACE_PHASE_CLOSED);
  for (int i = 0; i < 4; ++i) session.update();
  CHECK(session.new_entries() == CopiedSession::Keys{1});
  session.copy.forget(UINT64_MAX);
  constexpr int kManyUpdates = 100;
  for (int i = 0; i < kManyUpdates; ++i) session.update();
  CHECK(session.new_entries().empty());
  CHECK(session.copy.forgotten_blocks() == 1);
  session.buffer.blocks[1] = {};
  for (int i = 0; i < kManyUpdates; ++i) session.update();
  CHECK(session.copy.forgotten_blocks() == 0);
}

TEST_CASE("a change of what is recorded is new whatever programs were executed before") {
  CopiedSession session;
  session.update();
  const BufferView view(session.buffer_bytes->data(), Geometry{});
  // Types and ticks of the new records.
  using Found = std::vector<std::pair<uint16_t, uint64_t>>;
  const auto new_control_events = [&session] {
    REQUIRE(session.copy.update().ok());
    absl::StatusOr<reader::Trace> trace = session.copy.trace();
    REQUIRE(trace.ok());
    Found found;
    REQUIRE(trace
                ->read([&](const reader::Record& record) {
                  const bool is_control_event = record.type == ARCTRACE_TYPE_ENABLED ||
                                                record.type == ARCTRACE_TYPE_EXEC;
                  if (is_control_event && session.copy.take(record).is_new) {
                    found.emplace_back(record.type, record.ticks);
                  }
                  return true;
                })
                .ok());
    return found;
  };
  const auto change_gate = [&view](uint64_t ticks, uint32_t gate) {
    note_control_event(gate_changes(view), ticks, GateChange{gate, 0, 0}.pack());
  };
  change_gate(100, ARCTRACE_GATE_ALL);
  note_control_event(execs(view), 150, ExecEvent{5, 0}.pack());
  CHECK(new_control_events() ==
        Found{{ARCTRACE_TYPE_ENABLED, 100}, {ARCTRACE_TYPE_EXEC, 150}});
  CHECK(new_control_events().empty());
  change_gate(200, ARCTRACE_GATE_EVENTS);
  CHECK(new_control_events() == Found{{ARCTRACE_TYPE_ENABLED, 200}});
  // Newer ones replace the oldest ones.
  for (uint32_t i = 0; i < ARCTRACE_EXECS_KEPT; ++i) {
    note_control_event(execs(view), 300 + i, ExecEvent{6, 0}.pack());
  }
  CHECK(new_control_events().size() == size_t{ARCTRACE_EXECS_KEPT});
  change_gate(900, 0);
  CHECK(new_control_events() == Found{{ARCTRACE_TYPE_ENABLED, 900}});
  CHECK(new_control_events().empty());
}

TEST_CASE("a trace file is no live session") {
  const auto file = std::make_shared<std::vector<std::byte>>(FileBuilder().file());
  CHECK_FALSE(reader::SessionCopy::create(std::make_unique<ChangingInput>(file)).ok());
}

}  // namespace
}  // namespace arctrace::testing
