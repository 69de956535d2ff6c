// No bytes make the reader crash, hang or read outside of them: seeded damage to whole
// traces, which the sanitizers watch, and truncation at every byte.
#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/support/damaged_trace.hpp"
#include "tests/support/trace_builder.hpp"
#include "tests/unit/trace/collected.hpp"

namespace arctrace::testing {
namespace {

using reader::Trace;

// Opens and reads any bytes; returns how many records came, and checks what must be true
// of any input.
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

void mutate(const std::vector<std::byte>& whole, int rounds, size_t spared) {
  const uint64_t seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  int readable = 0;
  for (int round = 0; round < rounds; ++round) {
    CAPTURE(round);
    if (read_anything(damaged(whole, spared, random)) != 0) ++readable;
  }
  CHECK(readable > rounds / 3);
}

TEST_CASE("damaged files") { mutate(rich_file().file(), 8'000, 4096); }

TEST_CASE("damaged buffers") {
  const BufferBuilder buffer = rich_buffer();
  mutate(buffer.image(), 2'000, ARCTRACE_CPUS_OFFSET);
}

TEST_CASE("random bytes after a valid header") {
  const uint64_t seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 2'000; ++round) {
    FileBuilder file(1024);
    Bytes content;
    const size_t words = random() % 200;
    for (size_t i = 0; i < words; ++i) {
      const auto bits = random();
      content.u32(bits & random());
    }
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
      // The cut explains all findings: D and R7 are for definitions that came after it.
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
