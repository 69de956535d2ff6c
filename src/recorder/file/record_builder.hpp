// Builds the collector's own records, in full form, for one or more RECORDS chunks.
#pragma once

#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

namespace arctrace {

class RecordBuilder {
 public:
  // Begins a record of the collector about `writer`, or about no writer
  // (ARCTRACE_WRITER_COLLECTOR). The next begin() or bytes() ends it.
  void begin(uint16_t type, uint32_t writer, uint64_t ticks) {
    end();
    start_ = bytes_.size();
    type_ = type;
    body(arctrace_full_head{.word0 = 0, .writer = writer, .ticks = ticks});
  }
  // Appends the fixed part of the record's body, a struct of arctrace/format/.
  template <class Body>
  void body(const Body& body) {
    static_assert(alignof(Body) == 4 && std::is_trivially_copyable_v<Body>);
    append(&body, sizeof body);
  }
  // Appends bytes(n): the text, then zeros up to a multiple of 4.
  void text(std::string_view text) {
    append(text.data(), text.size());
    while (bytes_.size() % 4 != 0) bytes_.push_back(std::byte{0});
  }

  const std::vector<std::byte>& bytes() {
    end();
    return bytes_;
  }
  void clear() {
    bytes_.clear();
    type_ = 0;
  }

 private:
  void append(const void* from, size_t size) {
    const auto* first = static_cast<const std::byte*>(from);
    bytes_.insert(bytes_.end(), first, first + size);
  }
  void end() {
    if (type_ == 0) return;
    const uint32_t word0 = ARCTRACE_WORD0(type_, bytes_.size() - start_);
    __builtin_memcpy(bytes_.data() + start_, &word0, sizeof word0);
    type_ = 0;
  }

  std::vector<std::byte> bytes_;
  size_t start_ = 0;
  uint16_t type_ = 0;  // 0: no record begun
};

}  // namespace arctrace
