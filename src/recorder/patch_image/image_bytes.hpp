// The bytes of an image while it is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace arctrace::recorder {

constexpr uint64_t rounded_up(uint64_t value, uint64_t to) {
  return (value + to - 1) & ~(to - 1);
}

// The distance from `from` to `to`, as an instruction or a table has it.
constexpr uint32_t distance32(uint64_t from, uint64_t to) {
  return static_cast<uint32_t>(to - from);
}

// Bytes of which each is written once, at increasing offsets.
class ImageBytes {
 public:
  template <class Part>
  void add(const Part& part) {
    add_bytes(std::as_bytes(std::span(&part, 1)));
  }
  void add_bytes(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void add_uleb(uint64_t value) {
    for (; value >= 0x80; value >>= 7) add(static_cast<uint8_t>(value | 0x80));
    add(static_cast<uint8_t>(value));
  }
  void add_sleb(int64_t value) {
    for (;; value >>= 7) {
      const auto low = static_cast<uint8_t>(value & 0x7F);
      const bool is_last = (value >> 6) == 0 || (value >> 6) == -1;
      add(static_cast<uint8_t>(is_last ? low : low | 0x80));
      if (is_last) return;
    }
  }
  // Replaces a part at an offset that was added already.
  template <class Part>
  void set(uint64_t at, const Part& part) {
    std::memcpy(bytes_.data() + at, &part, sizeof part);
  }
  void pad_to(uint64_t size, std::byte with = std::byte{0}) { bytes_.resize(size, with); }
  void align(uint64_t to) { pad_to(rounded_up(size(), to)); }
  uint64_t size() const { return bytes_.size(); }
  std::vector<std::byte> take() && { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace arctrace::recorder
