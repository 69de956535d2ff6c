// memcpy and the like without libc: the traced program may have replaced or instrumented
// them, and libc's versions use vector registers, which a hook must not touch.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arctrace {

// For less than this many bytes a loop is faster than the processor's own, which takes
// some time to start, and needs certain registers.
inline constexpr size_t kLargeCopy = 256;

// REQUIRES: size < kLargeCopy.
inline void copy_few_bytes(void* to, const void* from, size_t size) {
  auto* out = static_cast<std::byte*>(to);
  const auto* in = static_cast<const std::byte*>(from);
  // Bytes near the end may be copied twice. One loop only: each takes registers.
  if (size >= 8) {
    const size_t last = size - 8;
    for (size_t i = 0; i < last; i += 8) __builtin_memcpy(out + i, in + i, 8);
    __builtin_memcpy(out + last, in + last, 8);
  } else if (size >= 4) {
    __builtin_memcpy(out, in, 4);
    __builtin_memcpy(out + size - 4, in + size - 4, 4);
  } else if (size != 0) {
    out[0] = in[0];
    out[size / 2] = in[size / 2];
    out[size - 1] = in[size - 1];
  }
}

inline void copy_bytes(void* to, const void* from, size_t size) {
#if defined(__x86_64__)
  if (size >= kLargeCopy) {
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
    return;
  }
#endif
  copy_few_bytes(to, from, size);
}

inline void fill_zero(void* to, size_t size) {
#if defined(__x86_64__)
  asm volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(0) : "memory");
#else
  auto* out = static_cast<volatile unsigned char*>(to);
  for (size_t i = 0; i < size; ++i) out[i] = 0;
#endif
}

// Sets each byte to 0xff, in ascending order.
inline void fill_ones(void* to, size_t size) {
#if defined(__x86_64__)
  asm volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(0xFF) : "memory");
#else
  auto* out = static_cast<volatile unsigned char*>(to);
  for (size_t i = 0; i < size; ++i) out[i] = 0xFF;
#endif
}

// The length of a zero-terminated text, at most `limit`.
inline size_t text_length(const char* text, size_t limit) {
  size_t n = 0;
  while (n < limit && text[n] != '\0') ++n;
  return n;
}

// The length of bytes(size) in a record: `size` bytes and the zeros after them.
constexpr uint32_t padded_size(uint32_t size) { return (size + 3) & ~3u; }

}  // namespace arctrace
