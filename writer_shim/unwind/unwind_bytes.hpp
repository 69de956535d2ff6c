// Reads unwind tables (.eh_frame) within bounds: numbers and pointers in the encodings of
// the Linux Standard Base and DWARF.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arctrace::shim {

// Pointer encodings (DW_EH_PE_*).
inline constexpr uint8_t kAbsolute = 0x00;
inline constexpr uint8_t kUnsigned2 = 0x02;
inline constexpr uint8_t kUnsigned4 = 0x03;
inline constexpr uint8_t kUnsigned8 = 0x04;
inline constexpr uint8_t kSigned2 = 0x0a;
inline constexpr uint8_t kSigned4 = 0x0b;
inline constexpr uint8_t kSigned8 = 0x0c;
inline constexpr uint8_t kFormMask = 0x0f;
inline constexpr uint8_t kRelativeMask = 0xf0;
inline constexpr uint8_t kPcRelative = 0x10;
inline constexpr uint8_t kDataRelative = 0x30;

// A cursor over mapped bytes. Past the end, or at an encoding that it does not know, it
// fails for good and yields zeros.
class UnwindBytes {
 public:
  UnwindBytes(uintptr_t at, uintptr_t end) : at_(at), end_(end), good_(at <= end) {}

  bool good() const { return good_; }
  bool more() const { return good_ && at_ < end_; }
  uintptr_t at() const { return at_; }
  uintptr_t left() const { return end_ - at_; }
  void fail() { good_ = false; }

  template <class T>
  T take() {
    T value{};
    if (!good_ || end_ - at_ < sizeof(T)) {
      good_ = false;
      return value;
    }
    __builtin_memcpy(&value, reinterpret_cast<const void*>(at_), sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  uint64_t uleb() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = take<uint8_t>();
      value |= uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) return value;
    }
    fail();
    return 0;
  }

  int64_t sleb() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64;) {
      const auto byte = take<uint8_t>();
      value |= uint64_t{byte & 0x7fu} << shift;
      shift += 7;
      if ((byte & 0x80) != 0) continue;
      if ((byte & 0x40) != 0 && shift < 64) value |= ~uint64_t{0} << shift;
      return static_cast<int64_t>(value);
    }
    fail();
    return 0;
  }

  uintptr_t pointer(uint8_t encoding) {
    const uintptr_t from = at_;
    uintptr_t value = 0;
    switch (encoding & kFormMask) {
      case kAbsolute:
      case kUnsigned8:
      case kSigned8:
        value = take<uint64_t>();
        break;
      case kUnsigned4:
        value = take<uint32_t>();
        break;
      case kSigned4:
        value = static_cast<uintptr_t>(int64_t{take<int32_t>()});
        break;
      case kUnsigned2:
        value = take<uint16_t>();
        break;
      case kSigned2:
        value = static_cast<uintptr_t>(int64_t{take<int16_t>()});
        break;
      default:
        fail();
    }
    if ((encoding & kRelativeMask) == kPcRelative) return value + from;
    if ((encoding & kRelativeMask) != 0) fail();
    return value;
  }

  // A cursor over the next `size` bytes, which this one steps over.
  UnwindBytes part(uint64_t size) {
    if (!good_ || size > end_ - at_) {
      good_ = false;
      return {at_, at_};
    }
    const uintptr_t from = at_;
    at_ += size;
    return {from, at_};
  }

 private:
  uintptr_t at_;
  uintptr_t end_;
  bool good_;
};

}  // namespace arctrace::shim
