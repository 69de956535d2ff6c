// A number of items of an array, kept as the offset of the item with that index, so that
// the fast path need not compute where it stands.
#pragma once

#include <cstdint>

#include "src/base/inlined.hpp"

namespace arctrace {

template <class Item, class Number>
class OffsetCount {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr OffsetCount(Number count = 0) : offset_(uint64_t{count} * sizeof(Item)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr operator Number() const {
    return static_cast<Number>(offset_ / sizeof(Item));
  }
  constexpr uint64_t offset() const { return offset_; }  // in bytes
  constexpr OffsetCount next() const { return at_offset(offset_ + sizeof(Item)); }
  // One less; of none, more than there can be.
  constexpr OffsetCount previous() const { return at_offset(offset_ - sizeof(Item)); }

  // Read once more, where the compiler would keep it in a register.
  OffsetCount load_anew() const { return at_offset(read_anew(offset_)); }

  // The same in a register of its own (inlined.hpp).
  OffsetCount beside_arguments() const {
    return at_offset(kept_beside_arguments<1>(offset_));
  }

 private:
  static constexpr OffsetCount at_offset(uint64_t offset) {
    OffsetCount made;
    made.offset_ = offset;
    return made;
  }

  uint64_t offset_;
};

}  // namespace arctrace
