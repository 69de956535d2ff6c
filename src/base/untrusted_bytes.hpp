// Structs out of bytes that other processes wrote: copied, and only if they are all
// there.
#pragma once

#include <bit>
#include <cstddef>
#include <span>
#include <type_traits>

namespace arctrace {

static_assert(std::endian::native == std::endian::little,
              "the format is little-endian, and so are the machines we run on");

// A copy of the `Part` that `bytes` begin with, at any alignment. All zero if there are
// fewer bytes than it has.
template <class Part>
Part load_part_untrusted(std::span<const std::byte> bytes) {
  static_assert(std::is_trivially_copyable_v<Part>);
  Part part{};
  if (bytes.size() >= sizeof part) __builtin_memcpy(&part, bytes.data(), sizeof part);
  return part;
}

}  // namespace arctrace
