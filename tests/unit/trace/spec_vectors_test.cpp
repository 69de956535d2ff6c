// SPEC.md's test vectors, read out of SPEC.md.
#include <doctest/doctest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "reader/trace/record_types.hpp"
#include "tests/support/trace_builder.hpp"
#include "tests/unit/trace/collected.hpp"

namespace arctrace::testing {
namespace {

struct Vector {
  std::string name;
  Bytes content;
  std::vector<std::string> expected;  // "ENTER 1005 7 36 11 ...", "torn", "breach R1"
};

std::vector<Vector> read_vectors() {
  std::ifstream spec(ARCTRACE_SPEC);
  REQUIRE(spec.is_open());
  std::vector<Vector> vectors;
  bool inside = false;
  for (std::string line; std::getline(spec, line);) {
    if (line.starts_with("```vector ")) {
      inside = true;
      vectors.push_back({line.substr(10), {}, {}});
    } else if (line == "```") {
      inside = false;
    } else if (inside && line.starts_with("-> ")) {
      vectors.back().expected.push_back(line.substr(3));
    } else if (inside) {
      std::istringstream hex(line);
      for (std::string byte; hex >> byte;) {
        vectors.back().content.fill(1,
                                    static_cast<uint8_t>(std::stoul(byte, nullptr, 16)));
      }
    }
  }
  return vectors;
}

std::string describe(const CollectedRecord& collected) {
  std::ostringstream out;
  out << reader::type_name(collected.record.type) << ' ' << collected.record.ticks << ' '
      << collected.writer;
  static constexpr char kDigits[] = "0123456789abcdef";
  for (const std::byte byte : collected.body) {
    out << ' ' << kDigits[uint8_t(byte) >> 4] << kDigits[uint8_t(byte) & 15];
  }
  return out.str();
}

TEST_CASE("a reader finds in each vector what SPEC.md says") {
  const std::vector<Vector> vectors = read_vectors();
  REQUIRE(vectors.size() >= 6);
  for (const Vector& vector : vectors) {
    CAPTURE(vector.name);
    const bool compact = vector.name.starts_with("compact");
    REQUIRE((compact || vector.name.starts_with("full")));
    BlockBuilder block =
        compact ? BlockBuilder::exclusive(7, 0, 0, 1000) : BlockBuilder::shared(0, 0);
    block.content = vector.content;
    FileBuilder file;
    file.block(block, ARCTRACE_CHUNK_OWNER_DIED);
    reader::Trace trace = open_bytes(file.file());
    std::vector<std::string> found;
    const auto all = collect(trace);
    for (uint64_t i = 0; i < trace.summary().torn; ++i) found.push_back("torn");
    for (const CollectedRecord& collected : all) found.push_back(describe(collected));
    for (const std::string& rule : rules_of(trace)) {
      if (rule[0] == 'R' && rule != "R7") found.push_back("breach " + rule);
    }
    CHECK(found == vector.expected);
  }
}

}  // namespace
}  // namespace arctrace::testing
