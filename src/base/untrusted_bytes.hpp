// Copies structs out of bytes that other processes wrote, after a check that all of their
// bytes exist.
#pragma once

#include <bit>
#include <cstddef>
#include <span>
#include <type_traits>

namespace arctrace {

static_assert(std::endian::native == std::endian::little,
              "the format is little-endian, and so are the machines we run on");

// A copy of the `Part` with which `bytes` begin, at any alignment; all zero if there are
// fewer bytes.
template <class Part>
Part load_part_untrusted(std::span<const std::byte> bytes) {
  static_assert(std::is_trivially_copyable_v<Part>);
  Part part{};
  if (bytes.size() >= sizeof part) __builtin_memcpy(&part, bytes.data(), sizeof part);
  return part;
}

}  // namespace arctrace
