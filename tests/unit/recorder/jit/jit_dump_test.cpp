// The parser of jitdump files, on valid and invalid bytes.
#include <doctest/doctest.h>

#include "src/buffer/clock.hpp"
#include "src/recorder/jit/perf_files.hpp"
#include "tests/support/code_bytes.hpp"

namespace arctrace {
namespace {

using testing::Bytes;
using testing::JitDumpBuilder;
using testing::NamelessFile;
using testing::ReadCode;
using testing::TakenCode;

constexpr uint32_t kPid = 321;
constexpr uint32_t kDebugInfo = 2, kClose = 3, kUnwindingInfo = 4;

ReadCode read_bytes(const std::string& bytes, uint64_t start_ns = 0) {
  const NamelessFile file(bytes);
  ReadCode read;
  read.summary =
      recorder::read_jit_dump_untrusted(file.fd(), {kPid, start_ns}, read.sink());
  return read;
}

ReadCode read_dump(const JitDumpBuilder& dump, uint64_t start_ns = 0) {
  return read_bytes(dump.text(), start_ns);
}

TEST_CASE("what is loaded has its time, and is found again where it is moved to") {
  JitDumpBuilder dump(kPid);
  dump.load(100, 0x5000, 0x20, "one", 1)
      .record(kDebugInfo, 110, Bytes().fill(60, 7))
      .load(120, 0x6000, 0x30, "two", 2)
      .record(kUnwindingInfo, 125, Bytes().fill(24, 7))
      .move(130, 0x5000, 0x7000, 0x20, 1)
      .load(140, 0x5000, 0x10, "three", 3);
  const ReadCode read = read_dump(dump);
  CHECK(read.taken == std::vector<TakenCode>{{0x5000, 0x20, 100, "one"},
                                             {0x6000, 0x30, 120, "two"},
                                             {0x7000, 0x20, 130, "one"},
                                             {0x5000, 0x10, 140, "three"}});
  CHECK(read.summary.names == 4);
  CHECK(read.summary.left_out == 0);
}

TEST_CASE("times of a time namespace are the machine's") {
  JitDumpBuilder dump(kPid, 1050);
  dump.load(1100, 0x5000, 0x20, "one", 1);
  time_namespace_offset_ns = 1000;
  const ReadCode read = read_dump(dump, 50);
  const ReadCode earlier = read_dump(dump, 51);
  time_namespace_offset_ns = 0;
  CHECK(read.taken == std::vector<TakenCode>{{0x5000, 0x20, 100, "one"}});
  CHECK(earlier.taken.empty());
}

TEST_CASE("nothing counts after the end that the runtime wrote") {
  JitDumpBuilder dump(kPid);
  dump.load(100, 0x5000, 0x20, "one", 1).record(kClose, 200, {});
  dump.load(300, 0x6000, 0x20, "two", 2);
  CHECK(read_dump(dump).taken.size() == 1);
}

TEST_CASE("times of the CPU's counter are not used") {
  JitDumpBuilder dump(kPid, 1, 1);
  dump.load(100, 0x5000, 0x20, "one", 1);
  const ReadCode read = read_dump(dump, 50);
  CHECK(read.taken == std::vector<TakenCode>{{0x5000, 0x20, 0, "one"}});
}

TEST_CASE("a dump of another byte order, version, process or time is not read") {
  const auto is_refused = [](const JitDumpBuilder& dump) {
    JitDumpBuilder with_code = dump;
    with_code.load(100, 0x5000, 0x20, "one", 1);
    const ReadCode read = read_dump(with_code, 50);
    return read.taken.empty() && read.summary.left_out == 1;
  };
  CHECK_FALSE(is_refused(JitDumpBuilder(kPid, 50)));
  CHECK(
      is_refused(JitDumpBuilder(kPid, 50, 0, __builtin_bswap32(JitDumpBuilder::kMagic))));
  CHECK(is_refused(JitDumpBuilder(kPid, 50, 0, 0)));
  CHECK(is_refused(JitDumpBuilder(kPid + 1, 50)));
  CHECK(is_refused(JitDumpBuilder(kPid, 49)));
  JitDumpBuilder newer(kPid, 50);
  newer.bytes.data()[4] = std::byte{2};
  CHECK(is_refused(newer));
}

TEST_CASE("records that name nothing are skipped") {
  JitDumpBuilder dump(kPid);
  dump.load(1, 0x5000, 0, "no_bytes", 1)
      .load(2, UINT64_MAX - 4, 0x20, "beyond_the_end", 2)
      .load(3, 0x5000, 0x20, "", 3)
      .move(4, 0x5000, 0x6000, 0x20, 77)
      .record(0, 5, Bytes().fill(8, 1))
      .record(1, 6, Bytes().fill(8, 1))
      .load(7, 0x9000, 0x20, "good", 4);
  const ReadCode read = read_dump(dump);
  CHECK(read.taken == std::vector<TakenCode>{{0x9000, 0x20, 7, "good"}});
  CHECK(read.summary.left_out == 6);
}

TEST_CASE("a dump ends wherever it is cut") {
  JitDumpBuilder dump(kPid);
  dump.load(100, 0x5000, 0x20, "one", 1).load(120, 0x6000, 0x30, "two", 2);
  const std::string whole = dump.text();
  const size_t first_end = 40 + 16 + 40 + 4 + 0x20;
  for (size_t size = 0; size < whole.size(); ++size) {
    const ReadCode read = read_bytes(whole.substr(0, size));
    CHECK(read.taken.size() <= 2);
    if (size >= first_end) CHECK(read.taken.size() >= 1);
  }
}

TEST_CASE("a record that is shorter than its head ends the dump") {
  JitDumpBuilder dump(kPid);
  dump.bytes.u32(kDebugInfo).u32(8).u64(1);
  dump.load(2, 0x5000, 0x20, "one", 1);
  const ReadCode read = read_dump(dump);
  CHECK(read.taken.empty());
  CHECK(read.summary.left_out == 1);
}

TEST_CASE("a name without its end is cut where the record ends") {
  JitDumpBuilder dump(kPid);
  Bytes body;
  body.u32(1).u32(1).u64(0x5000).u64(0x5000).u64(0x20).u64(1).raw("abc", 3);
  dump.record(0, 1, body).load(2, 0x6000, 0x20, "next", 2);
  const ReadCode read = read_dump(dump);
  REQUIRE(read.taken.size() == 2);
  CHECK(read.taken[0].name == "abc");
  CHECK(read.taken[1].name == "next");
}

}  // namespace
}  // namespace arctrace
