// No bytes make the reader crash, hang or read outside of them: seeded damage to whole
// traces, for the sanitizers to watch, and truncation at every byte.
#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/support/trace_builder.hpp"
#include "tests/unit/trace/collected.hpp"

namespace arctrace::testing {
namespace {

using reader::Trace;

// A bit of everything.
FileBuilder rich_file() {
  FileBuilder file(1024);
  file.records(
      full_record(ARCTRACE_TYPE_SYSTEM, 0, 1, system_body("host", "6.1", "cmd"))
          .append(full_record(ARCTRACE_TYPE_CLOCK_SYNC, 0, 2, clock_sync_body(2, 2, 2))));
  BlockBuilder defined = BlockBuilder::shared(0, 0, ARCTRACE_CLASS_DEFINITIONS);
  ProcessFacts child{2, 1, 101, 100, 0, ARCTRACE_ORIGIN_FORK, 10, "/bin/child", "child"};
  defined.add_full(ARCTRACE_TYPE_PROCESS, 1, 0, process_body({}));
  defined.add_full(ARCTRACE_TYPE_PROCESS, 2, 10, process_body(child));
  defined.add_full(ARCTRACE_TYPE_THREAD, 1, 0, thread_body(1, 1, 100, "main"));
  defined.add_full(ARCTRACE_TYPE_THREAD, 2, 10, thread_body(2, 2, 101, "child"));
  defined.add_full(ARCTRACE_TYPE_MODULE, 1, 0,
                   module_body(1, 0x1000, 0x2000, 0, "/bin/a", "id"));
  defined.add_full(ARCTRACE_TYPE_MODULE_GONE, 1, 90, module_gone_body(1, 0x1000));
  defined.add_full(ARCTRACE_TYPE_STRING, 1, 0, string_body(1, 1, "name"));
  defined.add_full(ARCTRACE_TYPE_EVENT_LAYOUT, 1, 0,
                   layout_body(1, 1, "event", {{ARCTRACE_FIELD_STRING, "s"}}));
  file.block(defined, 0, 0);
  file.block(BlockBuilder::exclusive(1, 0, 1, 10)
                 .add(ARCTRACE_TYPE_LOST, 10, lost_body(0, 5, 1))
                 .stack(10, {0x1000, 0x1100})
                 .enter(11, 0x1200)
                 .add(ARCTRACE_TYPE_EVENT, 12, event_body(1, text_body("text")))
                 .time(1ull << 33)
                 .exit((1ull << 33) + 1)
                 .add(ARCTRACE_TYPE_UNWIND, (1ull << 33) + 2, Bytes().u32(2))
                 .hole(3)
                 .add(ARCTRACE_TYPE_TEXT, (1ull << 33) + 3, text_body("more"), true),
             ARCTRACE_CHUNK_OWNER_DIED, 1);
  file.block(
      BlockBuilder::shared(2, 10)
          .add_full(ARCTRACE_TYPE_STACK, 2, 20, stack_body({}))
          .add_full(ARCTRACE_TYPE_ENTER, 2, 20, key_body(ARCTRACE_FRAME_NAME_BIT | 1))
          .add_full(ARCTRACE_TYPE_COUNTER, 1, 15, counter_body(1, -1))
          .hole(2)
          .add_full(ARCTRACE_TYPE_MARK, 2, 30, text_body("mark")),
      ARCTRACE_CHUNK_LIVE_COPY, 2);
  file.records(full_record(ARCTRACE_TYPE_WRITER_END, 0, 1ull << 34, pair_body(1, 1))
                   .append(full_record(ARCTRACE_TYPE_CLOCK_SYNC, 0, 1ull << 34,
                                       clock_sync_body(1ull << 34, 1ull << 34, 3))));
  file.finish(1ull << 34);
  return file;
}

BufferBuilder rich_buffer() {
  BufferBuilder buffer(1024, 8, 4);
  for (uint32_t i = 0; i < 2; ++i) {
    buffer.slots[i].lock = i == 0 ? 100 : 0x40000000;
    buffer.slots[i].writer = i + 1;
    buffer.slots[i].lost[0] = 9;
  }
  buffer.block(0,
               BlockBuilder::shared(0, 0, ARCTRACE_CLASS_DEFINITIONS)
                   .add_full(ARCTRACE_TYPE_PROCESS, 1, 0, process_body({}))
                   .add_full(ARCTRACE_TYPE_THREAD, 1, 0, thread_body(1, 1, 100, "m")),
               ARCTRACE_PHASE_SHARED);
  buffer.block(1,
               BlockBuilder::exclusive(1, 0, 1, 10).stack(10, {}).enter(11, 1).exit(12),
               ARCTRACE_PHASE_OWNED);
  buffer.block(2,
               BlockBuilder::shared(2, 10)
                   .add_full(ARCTRACE_TYPE_ENTER, 2, 20, key_body(1), true)
                   .add_full(ARCTRACE_TYPE_EXIT, 2, 21),
               ARCTRACE_PHASE_CLOSED);
  return buffer;
}

// Opens and reads whatever this is; returns how many records came, checking what must
// hold of any input.
uint64_t read_anything(std::vector<std::byte> bytes) {
  auto trace = Trace::open(reader::memory_input("t", std::move(bytes)), {5});
  if (!trace.ok()) {
    CHECK(trace.status().message().find('\n') == absl::string_view::npos);
    return 0;
  }
  uint64_t records = 0;
  uint64_t touched = 0;
  int64_t last_ns = INT64_MIN;
  bool in_order = true;
  const absl::Status status = trace->read([&](const reader::Record& record) {
    ++records;
    in_order = in_order && record.time_ns >= last_ns;
    last_ns = record.time_ns;
    for (const std::byte byte : record.body) touched += static_cast<uint64_t>(byte);
    const reader::Definitions& definitions = trace->definitions();
    const reader::Thread* thread = definitions.thread(record.thread);
    if (thread != nullptr) {
      touched += definitions.thread_name(record.thread, record.time_ns).size();
      if (definitions.module_at(thread->process, touched, record.time_ns)) ++touched;
      if (definitions.name(thread->process, 1)) ++touched;
      if (definitions.layout(thread->process, 1)) ++touched;
    }
    return true;
  });
  CHECK(status.ok());
  CHECK(in_order);
  CHECK(trace->findings().size() <= 5);
  return records;
}

// Overwrites, mostly with numbers that mean something somewhere.
void damage(std::vector<std::byte>& bytes, std::mt19937_64& random) {
  static constexpr uint32_t kNumbers[] = {
      0,          1,          4,          8,          16,         0xFFFFFFFF,
      0xFFFF,     0x7FFFFFFF, 0x80000000, 0xFFFC,     0x10000,    128,
      0x00020010, 0x00050010, 0x00040020, 0x00030010, 0x00300028, 0x4B4E4843};
  const uint64_t times = random() % 8 + 1;
  for (uint64_t i = 0; i < times; ++i) {
    const size_t at = random() % bytes.size();
    if (random() % 3 == 0) {
      bytes[at] ^= std::byte(1u << random() % 8);
    } else if (const size_t word = at & ~size_t{3}; word + 4 <= bytes.size()) {
      const uint32_t value = random() % 4 == 0 ? static_cast<uint32_t>(random())
                                               : kNumbers[random() % std::size(kNumbers)];
      std::memcpy(bytes.data() + word, &value, sizeof value);
    }
  }
  if (random() % 10 == 0) bytes.resize(random() % bytes.size());
}

void mutate(const std::vector<std::byte>& whole, int rounds, size_t spare_header) {
  const uint64_t seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  int readable = 0;
  for (int round = 0; round < rounds; ++round) {
    CAPTURE(round);
    std::vector<std::byte> bytes = whole;
    if (random() % 8 == 0) {
      damage(bytes, random);
    } else {  // behind the header, so that there is something to read
      std::vector<std::byte> rest(bytes.begin() + static_cast<ptrdiff_t>(spare_header),
                                  bytes.end());
      damage(rest, random);
      bytes.resize(spare_header);
      bytes.insert(bytes.end(), rest.begin(), rest.end());
    }
    if (read_anything(std::move(bytes)) != 0) ++readable;
  }
  CHECK(readable > rounds / 3);
}

TEST_CASE("damaged files") { mutate(rich_file().file(), 8'000, 4096); }

TEST_CASE("damaged buffers") {
  const BufferBuilder buffer = rich_buffer();
  mutate(buffer.image(), 2'000, ARCTRACE_CPUS_OFFSET);
}

TEST_CASE("random bytes behind a valid header") {
  const uint64_t seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 2'000; ++round) {
    FileBuilder file(1024);
    Bytes content;
    const size_t words = random() % 200;
    for (size_t i = 0; i < words; ++i) content.u32(random() & random());
    BlockBuilder block = round % 2 == 0 ? BlockBuilder::exclusive(1, 0, 0, random())
                                        : BlockBuilder::shared(0, random());
    block.content.append(content);
    file.block(block).records(content);
    read_anything(file.file());
  }
}

TEST_CASE("a file that ends anywhere is good up to there") {
  const std::vector<std::byte> whole = rich_file().file();
  const uint64_t all = read_anything(whole);
  uint64_t last = 0;
  for (size_t size = 4096; size <= whole.size(); ++size) {
    CAPTURE(size);
    std::vector<std::byte> bytes(whole.begin(),
                                 whole.begin() + static_cast<ptrdiff_t>(size));
    const uint64_t records = read_anything(bytes);
    CHECK(records >= last);
    last = records;
    Trace trace = open_bytes(std::move(bytes));
    collect(trace);
    CHECK((trace.finding_count() == 0) == (size == whole.size()));
    for (const reader::Finding& finding : trace.findings()) {
      // Nothing but what the cut explains: D and R7 for what was defined behind it.
      const std::string& rule = finding.rule;
      CHECK_MESSAGE((rule == "F5" || rule == "F6" || rule == "R7" || rule[0] == 'D'),
                    rule);
    }
  }
  CHECK(last == all);
}

TEST_CASE("a buffer's image that ends anywhere") {
  const std::vector<std::byte> whole = rich_buffer().image();
  for (size_t size = 0; size < whole.size(); size += size < 9000 ? 1 : 7) {
    CAPTURE(size);
    read_anything({whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size)});
  }
}

}  // namespace
}  // namespace arctrace::testing
