// The bytes of a record's body, taken apart from front to back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "src/base/untrusted_bytes.hpp"

namespace arctrace::reader {

inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Reads the parts of a body in turn. What would lie beyond the body's end reads as zero
// or empty, and ok() is false from then on.
class BodyReader {
 public:
  explicit BodyReader(std::span<const std::byte> body) : rest_(body) {}

  // The next sizeof(Part) bytes: a struct of arctrace/format/, or a number.
  template <class Part>
  Part read() {
    return load_part_untrusted<Part>(take(sizeof(Part)));
  }
  // `size` bytes; those that fill them up to a multiple of 4 are passed over.
  std::span<const std::byte> bytes(uint32_t size) {
    const uint64_t padded = (uint64_t{size} + 3) / 4 * 4;
    return take(padded).first(ok_ ? size : 0);
  }
  std::string_view text(uint32_t size) { return as_text(bytes(size)); }

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
