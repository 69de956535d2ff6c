// Whole traces, one property each: breaches of the format's rules.
#include <doctest/doctest.h>

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "reader/trace/trace.hpp"
#include "src/base/checksum.hpp"
#include "tests/support/trace_builder.hpp"
#include "tests/unit/trace/collected.hpp"

namespace arctrace::testing {
namespace {

using reader::Trace;
using Rules = std::vector<std::string>;

TEST_CASE("a block that breaks off: what stands before it counts, and what comes later") {
  FileBuilder file;
  file.program({}, 1, "main", 0);
  BlockBuilder broken =
      BlockBuilder::exclusive(1, 0, 1, 100).stack(100, {}).enter(101, 1);
  broken.content.u32(word0(ARCTRACE_TYPE_ENTER, 4000));
  file.block(broken, 0, 1);
  file.block(BlockBuilder::exclusive(1, 1, 2, 200).stack(200, {1}).exit(201), 0, 2);
  file.finish(300);
  Trace trace = open_bytes(file.file());
  const auto all = collect(trace);
  CHECK(of_type(all, ARCTRACE_TYPE_ENTER).size() == 1);
  CHECK(of_type(all, ARCTRACE_TYPE_EXIT).size() == 1);
  const auto stacks = of_type(all, ARCTRACE_TYPE_STACK);
  REQUIRE(stacks.size() == 2);
  CHECK_FALSE(stacks[0].record.after_gap);
  CHECK(stacks[1].record.after_gap);
  REQUIRE(rules_of(trace) == Rules{"R1"});
  CHECK(trace.findings()[0].chunk == 1);
  CHECK(trace.findings()[0].offset == 128 + 16 + 16);
}

TEST_CASE("a record whose content is wrong is skipped, and the walk goes on") {
  FileBuilder file;
  file.program({}, 1, "main", 0);
  file.block(BlockBuilder::exclusive(1, 0, 1, 100)
                 .stack(100, {})
                 .add(ARCTRACE_TYPE_TEXT, 101, Bytes().u32(1000))
                 .add(ARCTRACE_TYPE_ENTER, 102)
                 .exit(103),
             0, 1);
  file.finish(300);
  Trace trace = open_bytes(file.file());
  const auto all = collect(trace);
  CHECK(of_type(all, ARCTRACE_TYPE_TEXT).empty());
  CHECK(of_type(all, ARCTRACE_TYPE_ENTER).empty());
  CHECK(of_type(all, ARCTRACE_TYPE_EXIT).size() == 1);
  CHECK(trace.summary().invalid == 2);
  CHECK(rules_of(trace) == Rules{"R3", "R3"});
}

TEST_CASE("a block that stands twice counts once, the longer one") {
  const BlockBuilder head =
      BlockBuilder::exclusive(1, 0, 1, 100).stack(100, {}).enter(101, 1);
  const BlockBuilder whole = BlockBuilder(head).exit(102);
  for (const bool longer_first : {false, true}) {
    FileBuilder file;
    file.program({}, 1, "main", 0);
    file.block(longer_first ? whole : head, 0, 1)
        .block(longer_first ? head : whole, 0, 1);
    file.finish(200);
    Trace trace = open_bytes(file.file());
    const auto all = collect(trace);
    CHECK(of_type(all, ARCTRACE_TYPE_ENTER).size() == 1);
    CHECK(of_type(all, ARCTRACE_TYPE_EXIT).size() == 1);
    CHECK(rules_of(trace) == Rules{"B4"});
  }
}

TEST_CASE("records in the wrong block are shown, with a finding") {
  FileBuilder file;
  file.program({}, 1, "main", 0);
  file.block(BlockBuilder::exclusive(1, 0, 1, 100)
                 .stack(100, {})
                 .add(ARCTRACE_TYPE_STRING, 101, string_body(1, 1, "x")),
             0, 1);
  file.block(BlockBuilder::shared(2, 100, ARCTRACE_CLASS_DEFINITIONS)
                 .add_full(ARCTRACE_TYPE_EXIT, 1, 102),
             0, 2);
  file.records(full_record(ARCTRACE_TYPE_ENTER, 0, 103, key_body(1)));
  file.finish(200);
  Trace trace = open_bytes(file.file());
  const auto all = collect(trace);
  CHECK(of_type(all, ARCTRACE_TYPE_STRING).size() == 1);
  CHECK(of_type(all, ARCTRACE_TYPE_EXIT).size() == 1);
  CHECK(of_type(all, ARCTRACE_TYPE_ENTER).size() == 1);
  CHECK(rules_of(trace) == Rules{"R6", "R6", "R6"});
}

TEST_CASE("chunks that break rules") {
  const auto rules = [](const FileBuilder& file) {
    Trace trace = open_bytes(file.file());
    collect(trace);
    return rules_of(trace);
  };
  FileBuilder after_end = small_file();
  after_end.block(BlockBuilder::exclusive(1, 2, 3, 300).stack(300, {}), 0, 3);
  CHECK(rules(after_end) == Rules{"F7"});

  FileBuilder magic = small_file();
  magic.chunks.append(Bytes().fill(32, 0));
  CHECK(rules(magic) == Rules{"F1"});

  // A newer version's kinds are skipped, wherever they are.
  constexpr uint16_t kUnknownKind = 999;
  FileBuilder unknown = small_file();
  unknown.chunk(kUnknownKind, Bytes().fill(44, 0xFF));
  CHECK(rules(unknown).empty());
  FileBuilder unknown_first;
  unknown_first.chunk(kUnknownKind, Bytes().fill(32, 0)).program({}, 1, "main", 0);
  unknown_first.finish(1);
  CHECK(rules(unknown_first).empty());

  FileBuilder size;
  size.chunk(ARCTRACE_CHUNK_BLOCK, Bytes().fill(64, 0)).finish(1);
  CHECK(rules(size) == Rules{"F3"});
  FileBuilder large;
  large.chunk(ARCTRACE_CHUNK_BLOCK, Bytes().fill(4100, 0)).finish(1);
  CHECK(rules(large) == Rules{"F3"});
  FileBuilder records;
  records.chunk(ARCTRACE_CHUNK_RECORDS, Bytes().fill((16u << 20) + 4, 0xFF)).finish(1);
  CHECK(rules(records) == Rules{"F4"});

  FileBuilder sequence = small_file();
  sequence.chunks.data()[16] = std::byte{9};
  CHECK(rules(sequence) == Rules{"F2", "F2"});

  FileBuilder index;
  index.program({}, 1, "main", 8 + 3).finish(1);  // it has the index of block 0
  CHECK(rules(index) == Rules{"B3"});

  FileBuilder header;
  BlockBuilder form = BlockBuilder::exclusive(1, 0, 0, 0);
  form.header.form = 3;
  BlockBuilder compact_definitions = BlockBuilder::exclusive(1, 0, 0, 0);
  compact_definitions.header.block_class = ARCTRACE_CLASS_DEFINITIONS;
  BlockBuilder nobody = BlockBuilder::exclusive(0, 0, 0, 0);
  header.block(form).block(compact_definitions).block(nobody).finish(1);
  CHECK(rules(header) == Rules{"B2", "B2", "B2"});
}

// Returns a copy with checksums.
std::vector<std::byte> with_checksums(std::vector<std::byte> file) {
  arctrace_session_header header{};
  std::memcpy(&header, file.data(), sizeof header);
  header.features_required |= ARCTRACE_FEATURE_CHECKSUMS;
  std::memcpy(file.data(), &header, sizeof header);
  arctrace_chunk_header chunk{};
  for (size_t at = ARCTRACE_HEADER_SIZE; at < file.size();
       at += sizeof chunk + chunk.size) {
    std::memcpy(&chunk, &file[at], sizeof chunk);
    chunk.checksum = 0;
    std::memcpy(&file[at], &chunk, sizeof chunk);
    Checksum checksum;
    checksum.add(std::span(file).subspan(at, sizeof chunk + chunk.size));
    chunk.checksum = checksum.value();
    std::memcpy(&file[at], &chunk, sizeof chunk);
  }
  return file;
}

TEST_CASE("checksums show any bit that has changed, where they are asked for") {
  const std::vector<std::byte> without = small_file().file();
  const std::vector<std::byte> file = with_checksums(without);
  for (const bool verifies : {false, true}) {
    for (const auto& good : {without, file}) {
      CHECK(rules_of(open_bytes(good, {.verifies_checksums = verifies})).empty());
    }
  }
  size_t unseen = 0;  // damage that is not found without checksums
  for (size_t at = ARCTRACE_HEADER_SIZE; at < file.size(); ++at) {
    CAPTURE(at);
    std::vector<std::byte> damaged = file;
    damaged[at] ^= std::byte{1} << (at % 8);
    CHECK(!rules_of(open_bytes(damaged, {.verifies_checksums = true})).empty());
    if (rules_of(open_bytes(damaged)).empty()) ++unseen;
  }
  CHECK(unseen > 100);
}

TEST_CASE("findings are bounded, and counted") {
  FileBuilder file;
  BlockBuilder block = BlockBuilder::exclusive(1, 0, 0, 0);
  for (int i = 0; i < 100; ++i) block.add(ARCTRACE_TYPE_ENTER, 0);
  file.block(block);
  auto trace = Trace::open(reader::memory_input("t", file.file()), {10});
  REQUIRE(trace.ok());
  REQUIRE(trace->read([](const reader::Record&) { return true; }).ok());
  CHECK(trace->findings().size() == 10);
  CHECK(trace->finding_count() == 103);  // and unknown writer, its process, no end
}

}  // namespace
}  // namespace arctrace::testing
