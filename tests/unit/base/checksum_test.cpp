#include "src/base/checksum.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/random.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace::testing {
namespace {

uint32_t checksum_of(std::string_view text) {
  Checksum checksum;
  checksum.add(std::as_bytes(std::span(text)));
  return checksum.value();
}

TEST_CASE("checksum: the values that RFC 3720 and others give") {
  CHECK(checksum_of("") == 0);
  CHECK(checksum_of("123456789") == 0xE3069283);
  CHECK(checksum_of(std::string(32, '\0')) == 0x8A9136AA);
  CHECK(checksum_of(std::string(32, '\xFF')) == 0x62A8AB43);
}

TEST_CASE("checksum: with and without the instruction, in pieces and at any address") {
  Random random(test_seed());
  std::vector<std::byte> bytes(1000);
  for (std::byte& byte : bytes) byte = std::byte(random.below(256));
  for (int run = 0; run < 200; ++run) {
    const size_t from = random.below(100);
    const auto all = std::span(bytes).subspan(from, random.below(900));
    Checksum whole;
    whole.add(all);
    Checksum by_tables;
    by_tables.add_by_tables(all);
    CHECK(whole.value() == by_tables.value());
    Checksum in_pieces;
    for (auto rest = all; !rest.empty();) {
      const size_t piece = std::min<size_t>(rest.size(), 1 + random.below(20));
      in_pieces.add(rest.first(piece));
      rest = rest.subspan(piece);
    }
    CHECK(whole.value() == in_pieces.value());
  }
}

}  // namespace
}  // namespace arctrace::testing
