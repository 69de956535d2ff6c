// A thread of its own reads a trace, while another one takes its records.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reader/trace/input.hpp"
#include "reader/trace/read_ahead.hpp"
#include "tests/support/trace_builder.hpp"

namespace arctrace::testing {
namespace {

using reader::Record;
using reader::Trace;

constexpr uint64_t kBlocks = 40;
constexpr uint64_t kCallsInBlock = 500;

// One thread's calls, and between them texts that nearly fill a batch.
std::vector<std::byte> many_calls() {
  FileBuilder file(256u << 10);
  file.program({}, 1, "main", 0);
  uint64_t ticks = 100;
  for (uint64_t i = 0; i < kBlocks; ++i) {
    BlockBuilder block = BlockBuilder::exclusive(1, i, i + 1, ticks);
    block.stack(ticks, {});
    if (i % 10 == 5) {
      block.add(ARCTRACE_TYPE_TEXT, ticks, text_body(std::string(60'000, 'x')));
    }
    for (uint64_t n = 0; n < kCallsInBlock; ++n) {
      block.enter(++ticks, 0xA00 + n);
      block.exit(++ticks);
    }
    file.block(block, 0, static_cast<uint32_t>(i % 8));
  }
  file.finish(ticks);
  return file.file();
}

Trace opened() {
  absl::StatusOr<Trace> trace =
      Trace::open(reader::memory_input("calls.data", many_calls()));
  REQUIRE(trace.ok());
  return *std::move(trace);
}

struct Seen {
  uint64_t ticks;
  uint16_t type;
  std::vector<std::byte> body;
  bool operator==(const Seen&) const = default;
};

Seen seen(const Record& record) {
  return {record.ticks, record.type, {record.body.begin(), record.body.end()}};
}

TEST_CASE("the same records come, in the same order, and the same sums") {
  std::vector<Seen> alone;
  Trace first = opened();
  REQUIRE(first
              .read([&](const Record& record) {
                alone.push_back(seen(record));
                return true;
              })
              .ok());
  REQUIRE(alone.size() > 2 * kBlocks * kCallsInBlock);
  std::vector<Seen> beside;
  Trace second = opened();
  const absl::Status status = read_concurrently(second, [&](const Record& record) {
    // Both threads may use the clock.
    CHECK(second.clock().to_ns(record.ticks) == record.time_ns);
    beside.push_back(seen(record));
    return true;
  });
  CHECK(status.ok());
  CHECK(beside == alone);
  CHECK(second.summary().records == first.summary().records);
  CHECK(second.finding_count() == first.finding_count());
}

TEST_CASE("nothing comes after the last record that is wanted") {
  for (const size_t wanted : {size_t{1}, size_t{1500}, size_t{30'000}}) {
    Trace trace = opened();
    size_t taken = 0;
    CHECK(read_concurrently(trace, [&](const Record&) { return ++taken < wanted; }).ok());
    CHECK(taken == wanted);
  }
}

// An input that can't be read any more once the test says so.
class Broken : public reader::Input {
 public:
  explicit Broken(const bool& is_broken)
      : whole_(reader::memory_input("calls.data", many_calls())), is_broken_(is_broken) {}
  const std::string& name() const override { return whole_->name(); }
  uint64_t size() const override { return whole_->size(); }
  absl::StatusOr<size_t> read(uint64_t offset, std::span<std::byte> into) override {
    if (is_broken_) return absl::DataLossError("broken");
    return whole_->read(offset, into);
  }

 private:
  const std::unique_ptr<reader::Input> whole_;
  const bool& is_broken_;
};

TEST_CASE("an error of the input ends it") {
  bool is_broken = false;
  absl::StatusOr<Trace> trace = Trace::open(std::make_unique<Broken>(is_broken));
  REQUIRE(trace.ok());
  is_broken = true;
  const absl::Status status =
      read_concurrently(*trace, [](const Record&) { return true; });
  CHECK(status.message() == "broken");
}

}  // namespace
}  // namespace arctrace::testing
