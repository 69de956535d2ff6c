// The parser of perf maps, on valid and invalid lines.
#include <doctest/doctest.h>

#include "src/recorder/jit/perf_files.hpp"
#include "tests/support/code_bytes.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace {
namespace {

using testing::NamelessFile;
using testing::ReadCode;
using testing::TakenCode;

ReadCode read_map(const std::string& text) {
  const NamelessFile file(text);
  ReadCode read;
  read.summary = recorder::read_perf_map_untrusted(file.fd(), read.sink());
  return read;
}

TEST_CASE("each line of a perf map names a range") {
  const ReadCode read = read_map(
      "7f00a000 40 first\n"
      "0x7f00b000 0x10 second one, with  blanks\n"
      "  7f00c000\t8\tthird\n");
  CHECK(read.taken ==
        std::vector<TakenCode>{{0x7f00a000, 0x40, 0, "first"},
                               {0x7f00b000, 0x10, 0, "second one, with  blanks"},
                               {0x7f00c000, 8, 0, "third"}});
  CHECK(read.summary.names == 3);
  CHECK(read.summary.left_out == 0);
  CHECK_FALSE(read.summary.is_cut);
}

TEST_CASE("lines stay in the order of the file, also when they overlap or are unsorted") {
  const ReadCode read = read_map("2000 10 b\n1000 2000 a\n2000 10 c\n");
  REQUIRE(read.taken.size() == 3);
  CHECK(read.taken[0].name == "b");
  CHECK(read.taken[1].name == "a");
  CHECK(read.taken[2].name == "c");
}

TEST_CASE("what is no line of a perf map is skipped and counted") {
  const ReadCode read = read_map(
      "\n"                         // empty
      "1000\n"                     // no size
      "1000 20\n"                  // no name
      "1000 20 \n"                 // no name
      "1000 0 empty\n"             // no bytes
      "fffffffffffffff0 20 end\n"  // beyond the address space
      "10000000000000000 1 big\n"  // no 64-bit number
      "-1000 20 negative\n"
      "xyz 20 no_number\n"
      "100020 all_in_one\n"
      "1000 20 good\n"
      "2000 20 half_wri");
  CHECK(read.taken == std::vector<TakenCode>{{0x1000, 0x20, 0, "good"}});
  CHECK(read.summary.left_out == 11);
}

TEST_CASE("an endless line costs nothing but itself") {
  const std::string endless(300'000, 'x');
  const ReadCode read =
      read_map("1000 20 " + endless + "\n2000 20 after\n3000 20 " + endless);
  REQUIRE(read.taken.size() == 3);
  CHECK(read.taken[0].name == endless.substr(0, recorder::kCodeNameMax));
  CHECK(read.taken[1] == TakenCode{0x2000, 0x20, 0, "after"});
  CHECK(read.taken[2].name.size() == recorder::kCodeNameMax);
}

TEST_CASE("what the sink has no room for is skipped") {
  const NamelessFile file("1000 1 a\n2000 1 b\n3000 1 c\n");
  int calls = 0;
  const recorder::CodeFileSummary summary = recorder::read_perf_map_untrusted(
      file.fd(), [&](const recorder::NamedCode&) { return ++calls <= 2; });
  CHECK(summary.names == 2);
  CHECK(summary.left_out == 1);
}

TEST_CASE("a giant map is read to a limit") {
  const NamelessFile file("1000 1 a\n");
  REQUIRE(ftruncate(file.fd(), off_t{1} << 40) == 0);
  ReadCode read;
  read.summary = recorder::read_perf_map_untrusted(file.fd(), read.sink());
  CHECK(read.summary.names == 1);
  CHECK(read.summary.is_cut);
}

TEST_CASE("any bytes are a map") {
  testing::Random random(testing::test_seed());
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    const uint64_t size = random.below(200);
    for (uint64_t i = 0; i < size; ++i) {
      text += "0123456789abcdefx \t\n\r\xff"[random.below(22)];
    }
    const ReadCode read = read_map(text);
    CHECK(read.summary.names == read.taken.size());
    for (const TakenCode& code : read.taken)
      CHECK(recorder::is_code_range(code.start, code.size));
  }
}

}  // namespace
}  // namespace arctrace
