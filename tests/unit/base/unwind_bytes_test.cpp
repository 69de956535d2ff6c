// Numbers and pointers of unwind tables, within bounds.
#include "src/base/unwind_bytes.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace arctrace::testing {
namespace {

constexpr uint64_t kAddress = 0x4000;

// Bytes of a table, and a cursor over them.
struct Table {
  std::vector<std::byte> bytes;

  Table(std::initializer_list<int> values) {
    for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  }
  UnwindBytes cursor() const { return {bytes, kAddress}; }
};

TEST_CASE("unwind bytes: numbers of seven bits a byte, with padding and of all 64 bits") {
  CHECK(Table{0x02}.cursor().uleb() == 2);
  CHECK(Table{0xe5, 0x8e, 0x26}.cursor().uleb() == 624485);
  CHECK(Table{0x82, 0x80, 0x00}.cursor().uleb() == 2);
  const Table largest{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
  CHECK(largest.cursor().uleb() == UINT64_MAX);
  CHECK(Table{0x7f}.cursor().sleb() == -1);
  CHECK(Table{0xc0, 0xbb, 0x78}.cursor().sleb() == -123456);
  const Table least{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f};
  CHECK(least.cursor().sleb() == INT64_MIN);
}

TEST_CASE("unwind bytes: a number that does not end, or is too long, fails for good") {
  const Table endless{0x80, 0x80};
  UnwindBytes in = endless.cursor();
  in.uleb();
  CHECK_FALSE(in.good());
  const Table eleven{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00, 9};
  in = eleven.cursor();
  CHECK(in.uleb() == 0);
  CHECK_FALSE(in.good());
  CHECK(in.number<uint8_t>() == 0);
  CHECK(in.at_end());
}

TEST_CASE("unwind bytes: pointers, absolute and from themselves") {
  const Table four{0x10, 0, 0, 0};
  CHECK(four.cursor().pointer(kPointerSigned4) == 0x10);
  CHECK(four.cursor().pointer(kPointerFromItself | kPointerSigned4) == kAddress + 0x10);
  const Table back{0xf0, 0xff, 0xff, 0xff};
  CHECK(back.cursor().pointer(kPointerFromItself | kPointerSigned4) == kAddress - 0x10);
  const Table none{0, 0, 0, 0};
  CHECK(none.cursor().pointer(kPointerFromItself | kPointerSigned4) == 0);
  for (const int encoding : {kPointerIndirect | kPointerFromItself | kPointerSigned4,
                             kPointerFromTable | kPointerSigned4, 0x05}) {
    CAPTURE(encoding);
    UnwindBytes in = four.cursor();
    CHECK(in.pointer(static_cast<uint8_t>(encoding)) == 0);
    CHECK_FALSE(in.good());
  }
}

TEST_CASE(
    "unwind bytes: a part ends where it was cut, and one that is too long is empty") {
  const Table table{1, 2, 3};
  UnwindBytes in = table.cursor();
  UnwindBytes part = in.part(2);
  CHECK(in.address() == kAddress + 2);
  CHECK(part.address() == kAddress);
  CHECK(part.number<uint16_t>() == 0x0201);
  CHECK(part.at_end());
  CHECK(in.part(2).at_end());
  CHECK_FALSE(in.good());
}

TEST_CASE("unwind bytes: mapped bytes have their own addresses") {
  const Table table{7, 8};
  const auto low = reinterpret_cast<uintptr_t>(table.bytes.data());
  UnwindBytes in = UnwindBytes::mapped(low, low + 2);
  CHECK(in.number<uint8_t>() == 7);
  CHECK(in.address() == low + 1);
  CHECK(UnwindBytes::mapped(low + 1, low).at_end());
}

}  // namespace
}  // namespace arctrace::testing
