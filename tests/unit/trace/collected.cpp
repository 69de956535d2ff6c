#include "tests/unit/trace/collected.hpp"

#include <doctest/doctest.h>

#include <utility>

#include "src/base/untrusted_bytes.hpp"

namespace arctrace::testing {

reader::Trace open_bytes(std::vector<std::byte> bytes,
                         const reader::OpenOptions& options) {
  absl::StatusOr<reader::Trace> trace =
      reader::Trace::open(reader::memory_input("test.data", std::move(bytes)), options);
  REQUIRE_MESSAGE(trace.ok(), trace.status().ToString());
  return *std::move(trace);
}

std::vector<CollectedRecord> collect(reader::Trace& trace) {
  std::vector<CollectedRecord> all;
  const absl::Status status = trace.read([&](const reader::Record& record) {
    const reader::Thread* thread = trace.definitions().thread(record.thread);
    all.push_back({record,
                   {record.body.begin(), record.body.end()},
                   thread == nullptr ? 0 : thread->writer});
    return true;
  });
  REQUIRE_MESSAGE(status.ok(), status.ToString());
  for (CollectedRecord& collected : all) collected.record.body = collected.body;
  return all;
}

std::vector<CollectedRecord> of_type(const std::vector<CollectedRecord>& all,
                                     uint16_t type) {
  std::vector<CollectedRecord> some;
  for (const CollectedRecord& collected : all) {
    if (collected.record.type == type) some.push_back(collected);
  }
  return some;
}

std::vector<std::string> rules_of(const reader::Trace& trace) {
  std::vector<std::string> rules;
  for (const reader::Finding& finding : trace.findings()) rules.push_back(finding.rule);
  return rules;
}

uint32_t first_u32(const CollectedRecord& record) {
  REQUIRE(record.body.size() >= 4);
  return load_part_untrusted<uint32_t>(record.body);
}

uint64_t first_u64(const CollectedRecord& record) {
  REQUIRE(record.body.size() >= 8);
  return load_part_untrusted<uint64_t>(record.body);
}

FileBuilder small_file() {
  FileBuilder file;
  file.program({}, 1, "main", 0);
  file.block(BlockBuilder::exclusive(1, 0, 1, 100)
                 .stack(100, {})
                 .enter(100, 0xA)
                 .enter(110, 0xB),
             0, 1);
  file.block(BlockBuilder::exclusive(1, 1, 2, 120)
                 .stack(120, {0xA, 0xB})
                 .exit(120)
                 .add(ARCTRACE_TYPE_TEXT, 125, text_body("hello"))
                 .exit(130),
             0, 2);
  file.finish(200);
  return file;
}

}  // namespace arctrace::testing
