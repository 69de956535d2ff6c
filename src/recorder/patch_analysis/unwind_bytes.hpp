// Reads numbers in DWARF's encodings from untrusted bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "src/base/untrusted_bytes.hpp"

namespace arctrace {

// How a pointer is encoded (DW_EH_PE_*): the low four bits are its form, the next three
// what it counts from.
inline constexpr uint8_t kPointerOmitted = 0xFF;
inline constexpr uint8_t kPointerFormMask = 0x0F;
inline constexpr uint8_t kPointerBaseMask = 0x70;
inline constexpr uint8_t kPointerFromItself = 0x10;
inline constexpr uint8_t kPointerIndirect = 0x80;

// A cursor. After the first read beyond the end, or of an unknown form, all reads return
// 0 and good() is false.
class UnwindByteReader {
 public:
  // `address`: that of the first byte.
  UnwindByteReader(std::span<const std::byte> bytes, uint64_t address)
      : bytes_(bytes), address_(address) {}

  bool good() const { return good_; }
  bool at_end() const { return bytes_.empty(); }
  uint64_t address() const { return address_; }
  std::span<const std::byte> rest() const { return bytes_; }

  template <class Number>
  Number number() {
    if (bytes_.size() < sizeof(Number)) {
      fail();
      return 0;
    }
    const auto value = load_part_untrusted<Number>(bytes_);
    skip(sizeof(Number));
    return value;
  }

  void skip(uint64_t count) {
    if (count > bytes_.size()) return fail();
    bytes_ = bytes_.subspan(count);
    address_ += count;
  }

  uint64_t uleb() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      const auto byte = number<uint8_t>();
      if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    fail();
    return 0;
  }

  int64_t sleb() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      const auto byte = number<uint8_t>();
      if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if ((byte & 0x80) != 0) continue;
      if ((byte & 0x40) != 0 && shift + 7 < 64) value |= ~uint64_t{0} << (shift + 7);
      return static_cast<int64_t>(value);
    }
    fail();
    return 0;
  }

  // A pointer of that encoding, absolute or from itself; 0 is no pointer, whatever it
  // counts from. Fails for other bases.
  uint64_t pointer(uint8_t encoding) {
    const uint64_t from = address_;
    uint64_t value = form(encoding & kPointerFormMask);
    if ((encoding & kPointerIndirect) != 0) fail();
    const uint8_t base = encoding & kPointerBaseMask;
    if (value != 0 && base == kPointerFromItself) value += from;
    if (base != 0 && base != kPointerFromItself) fail();
    return good_ ? value : 0;
  }

  // The same without a base.
  uint64_t form(uint8_t form) {
    switch (form) {
      case 0x00:
      case 0x04:
      case 0x0C:
        return number<uint64_t>();
      case 0x01:
        return uleb();
      case 0x02:
        return number<uint16_t>();
      case 0x03:
        return number<uint32_t>();
      case 0x09:
        return static_cast<uint64_t>(sleb());
      case 0x0A:
        return static_cast<uint64_t>(int64_t{number<int16_t>()});
      case 0x0B:
        return static_cast<uint64_t>(int64_t{number<int32_t>()});
      default:
        fail();
        return 0;
    }
  }

 private:
  void fail() {
    good_ = false;
    bytes_ = {};
  }

  std::span<const std::byte> bytes_;
  uint64_t address_;
  bool good_ = true;
};

}  // namespace arctrace
