// Reads unwind tables (.eh_frame, .gcc_except_table) within bounds: numbers and pointers
// in the encodings of DWARF and the Linux Standard Base, and the codes of their
// instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "src/base/untrusted_bytes.hpp"

namespace arctrace {

// The opcodes of call frame instructions, and of the few expressions, that are read here.
// They have the names that the DWARF standard and elfutils' dwarf.h give them, which is
// not included because the shim is built from no library's headers but libc's.
inline constexpr uint8_t kCfaOpcodeMask = 0xc0;
inline constexpr uint8_t kCfaOperandMask = 0x3f;
enum DwarfCfa : uint8_t {
  // The first three have an operand in their lower six bits.
  DW_CFA_advance_loc = 0x40,
  DW_CFA_offset = 0x80,
  DW_CFA_restore = 0xc0,

  DW_CFA_nop = 0x00,
  DW_CFA_set_loc = 0x01,
  DW_CFA_advance_loc1 = 0x02,
  DW_CFA_advance_loc2 = 0x03,
  DW_CFA_advance_loc4 = 0x04,
  DW_CFA_offset_extended = 0x05,
  DW_CFA_restore_extended = 0x06,
  DW_CFA_undefined = 0x07,
  DW_CFA_same_value = 0x08,
  DW_CFA_register = 0x09,
  DW_CFA_remember_state = 0x0a,
  DW_CFA_restore_state = 0x0b,
  DW_CFA_def_cfa = 0x0c,
  DW_CFA_def_cfa_register = 0x0d,
  DW_CFA_def_cfa_offset = 0x0e,
  DW_CFA_def_cfa_expression = 0x0f,
  DW_CFA_expression = 0x10,
  DW_CFA_offset_extended_sf = 0x11,
  DW_CFA_def_cfa_sf = 0x12,
  DW_CFA_def_cfa_offset_sf = 0x13,
  DW_CFA_val_offset = 0x14,
  DW_CFA_val_offset_sf = 0x15,
  DW_CFA_val_expression = 0x16,
  DW_CFA_AARCH64_negate_ra_state = 0x2d,  // the return address is signed, or no more
  DW_CFA_GNU_args_size = 0x2e,
  DW_CFA_GNU_negative_offset_extended = 0x2f
};

enum DwarfOperation : uint8_t {
  DW_OP_deref = 0x06,
  DW_OP_breg0 = 0x70,
  DW_OP_breg31 = 0x8f
};

// How a pointer is encoded (DW_EH_PE_*): the low four bits are its form, the next three
// what it counts from.
inline constexpr uint8_t kPointerAbsolute = 0x00;
inline constexpr uint8_t kPointerSigned4 = 0x0b;
inline constexpr uint8_t kPointerFormMask = 0x0f;
inline constexpr uint8_t kPointerBaseMask = 0x70;
inline constexpr uint8_t kPointerFromItself = 0x10;
inline constexpr uint8_t kPointerFromTable = 0x30;
inline constexpr uint8_t kPointerIndirect = 0x80;
inline constexpr uint8_t kPointerOmitted = 0xff;

// A cursor. After the first read beyond the end, or of an unknown form, all reads yield 0
// and good() is false.
class UnwindBytes {
 public:
  // `address`: that of the first byte in the module.
  UnwindBytes(std::span<const std::byte> bytes, uint64_t address)
      : bytes_(bytes), address_(address) {}

  // A cursor over bytes that are mapped at their addresses; over none if `low` is above
  // `high`.
  static UnwindBytes mapped(uintptr_t low, uintptr_t high) {
    const size_t size = low <= high ? high - low : 0;
    return {{reinterpret_cast<const std::byte*>(low), size}, low};
  }

  bool good() const { return good_; }
  bool at_end() const { return bytes_.empty(); }
  uint64_t address() const { return address_; }
  std::span<const std::byte> rest() const { return bytes_; }

  void fail() {
    good_ = false;
    bytes_ = {};
  }

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

  // A cursor over the next `size` bytes, which this one skips; over none after a failure.
  UnwindBytes part(uint64_t size) {
    const std::span<const std::byte> bytes = bytes_;
    const uint64_t from = address_;
    skip(size);
    return {good_ ? bytes.first(size) : std::span<const std::byte>{}, from};
  }

  // A number of seven bits a byte; bits above the 64th are dropped.
  uint64_t uleb() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < kLebBitsMax; shift += 7) {
      const auto byte = number<uint8_t>();
      if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    fail();
    return 0;
  }

  int64_t sleb() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < kLebBitsMax; shift += 7) {
      const auto byte = number<uint8_t>();
      if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7f) << shift;
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

  // A number of this form, without a base.
  uint64_t form(uint8_t form) {
    switch (form) {
      case 0x00:
      case 0x04:
      case 0x0c:
        return number<uint64_t>();
      case 0x01:
        return uleb();
      case 0x02:
        return number<uint16_t>();
      case 0x03:
        return number<uint32_t>();
      case 0x09:
        return static_cast<uint64_t>(sleb());
      case 0x0a:
        return static_cast<uint64_t>(int64_t{number<int16_t>()});
      case kPointerSigned4:
        return static_cast<uint64_t>(int64_t{number<int32_t>()});
      default:
        fail();
        return 0;
    }
  }

 private:
  static constexpr unsigned kLebBitsMax = 70;  // ten bytes hold 64 bits

  std::span<const std::byte> bytes_;
  uint64_t address_;
  bool good_ = true;
};

}  // namespace arctrace
