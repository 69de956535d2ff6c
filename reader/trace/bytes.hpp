// Little-endian numbers out of bytes that are our own copy.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace arctrace::reader {

static_assert(std::endian::native == std::endian::little,
              "the format is little-endian, and so are the machines we run on");

// REQUIRES: 4 bytes at `from`; any alignment.
inline uint32_t load_u32(const std::byte* from) {
  uint32_t value = 0;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// REQUIRES: 8 bytes at `from`; any alignment.
inline uint64_t load_u64(const std::byte* from) {
  uint64_t value = 0;
  std::memcpy(&value, from, sizeof value);
  return value;
}

inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Takes a record's body apart, front to back. Beyond the end everything is 0 or empty
// and ok() is false from then on.
class BodyReader {
 public:
  explicit BodyReader(std::span<const std::byte> body) : rest_(body) {}

  uint32_t u32() {
    const auto bytes = take(4);
    return bytes.empty() ? 0 : load_u32(bytes.data());
  }
  uint64_t u64() {
    const auto bytes = take(8);
    return bytes.empty() ? 0 : load_u64(bytes.data());
  }
  // `size` bytes and the zeros up to the next multiple of 4.
  std::span<const std::byte> padded(uint32_t size) {
    const uint64_t whole = (uint64_t{size} + 3) / 4 * 4;
    return take(whole).first(ok_ ? size : 0);
  }
  std::string_view padded_text(uint32_t size) { return as_text(padded(size)); }

  bool ok() const { return ok_; }
  std::span<const std::byte> rest() const { return rest_; }

 private:
  std::span<const std::byte> take(uint64_t size) {
    if (size > rest_.size()) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    const auto taken = rest_.first(static_cast<size_t>(size));
    rest_ = rest_.subspan(static_cast<size_t>(size));
    return taken;
  }

  std::span<const std::byte> rest_;
  bool ok_ = true;
};

}  // namespace arctrace::reader
