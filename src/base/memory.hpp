// Accesses to memory of the calling thread by code that runs in traced programs: to
// bytes, and to words.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arctrace {

// Bytes: memcpy and the like without libc, because the traced program may have replaced
// or instrumented them, and libc's versions use vector registers, which a hook must not
// touch.

// For less than this many bytes a loop is faster than the processor's own instruction,
// which takes some time to start, and needs certain registers.
inline constexpr size_t kLargeCopy = 256;

// REQUIRES: size < kLargeCopy.
inline void copy_few_bytes(void* to, const void* from, size_t size) {
  auto* out = static_cast<std::byte*>(to);
  const auto* in = static_cast<const std::byte*>(from);
  // Bytes near the end may be copied twice. There is only one loop, because each takes
  // registers.
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

// The 32-bit word at a record's start, or inside its body.
inline uint32_t& word_at(std::byte* address) {
  return *reinterpret_cast<uint32_t*>(address);
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

// Words of the calling thread: the fast path is written with these functions, so that the
// compiler makes few instructions of it.

// Stands after a lambda's parameters: the lambda is inlined before the compiler decides
// which variables stay in registers. Otherwise those that it captures are kept in memory.
#define ARCTRACE_INLINED __attribute__((always_inline))

// A function that saves whatever registers it uses, for callers that have values in all
// of them, like code that is about to return. Only code for traced programs can be
// compiled so, because it uses general registers only.
#if defined(__x86_64__) && !defined(__SSE__)
#define ARCTRACE_KEEPS_REGISTERS __attribute__((no_caller_saved_registers))
#else
#define ARCTRACE_KEEPS_REGISTERS
#endif

namespace arctrace {

// Returns the same pointer, but hides from the compiler how it was computed: the compiler
// keeps the pointer, and does not compute it anew wherever it is used.
template <class T>
__attribute__((always_inline)) inline T* pointer_in_register(T* pointer) {
  asm("" : "+r"(pointer));
  return pointer;
}

// Returns the same value in a register in which no entry point has an argument: gcc gives
// the arguments' registers away to what it uses more often, and moves the arguments.
template <int kIndex, class T>
__attribute__((always_inline)) inline T in_register_beside_arguments(T value) {
#if defined(__x86_64__)
  if constexpr (kIndex == 0) {
    register T kept asm("r8") = value;
    asm("" : "+r"(kept));
    return kept;
  } else {
    register T kept asm("r11") = value;
    asm("" : "+r"(kept));
    return kept;
  }
#else
  return value;
#endif
}

// Returns the same number, but hides from the compiler how it was computed.
__attribute__((always_inline)) inline uintptr_t number_in_register(uintptr_t number) {
  asm("" : "+r"(number));
  return number;
}

// Reads memory although it was read or stored before, so that no register is kept for the
// value.
template <class T>
__attribute__((always_inline)) inline T read_anew(const T& from) {
  return *const_cast<const volatile T*>(&from);
}

// The address of an object on the stack, computed anew wherever it is asked for, so that
// no register is kept for it.
template <class T>
__attribute__((always_inline)) inline uintptr_t address_anew(const T* object) {
  uintptr_t address;
#if defined(__x86_64__)
  asm volatile("leaq %1, %0" : "=r"(address) : "m"(*object));
#else
  address = reinterpret_cast<uintptr_t>(object);
#endif
  return address;
}

// Whether a word in memory has any of these bits, in one instruction where the machine
// has one: compilers first load what is volatile. It is read once.
template <uint32_t kBits>
__attribute__((always_inline)) inline bool has_any_bit(const volatile uint32_t& word) {
#if defined(__x86_64__)
  bool has;
  asm volatile("testl %2, %1" : "=@ccnz"(has) : "m"(word), "i"(kBits));
  return has;
#else
  return (word & kBits) != 0;
#endif
}

// Whether a word in memory has this value, in one instruction. Compilers would make one
// comparison of two neighbouring words, for which they put the values together.
template <class Word>
__attribute__((always_inline)) inline bool is_equal(const volatile Word& word,
                                                    Word value) {
#if defined(__x86_64__)
  bool is;
  if constexpr (sizeof(Word) == sizeof(uint32_t)) {
    asm volatile("cmpl %2, %1" : "=@ccz"(is) : "m"(word), "r"(value));
  } else {
    static_assert(sizeof(Word) == sizeof(uint64_t));
    asm volatile("cmpq %2, %1" : "=@ccz"(is) : "m"(word), "r"(value));
  }
  return is;
#else
  return word == value;
#endif
}

// Whether a word in memory is greater than `value`, without a sign, in one instruction.
template <class Word>
__attribute__((always_inline)) inline bool is_above(const Word& word, Word value) {
  static_assert(sizeof(Word) == sizeof(uint64_t));
#if defined(__x86_64__)
  bool is;
  asm volatile("cmpq %2, %1" : "=@cca"(is) : "m"(word), "r"(value));
  return is;
#else
  return word > value;
#endif
}

// Adds to a pointer in memory in one instruction: the sum needs no register.
template <class T>
__attribute__((always_inline)) inline void advance(T*& pointer, uint64_t bytes) {
#if defined(__x86_64__)
  asm volatile("addq %1, %0" : "+m"(pointer) : "er"(bytes) : "cc");
#else
  pointer = reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(pointer) + bytes);
#endif
}

// Stores a word that other threads may read, in one instruction; relaxed.
__attribute__((always_inline)) inline void store_word(uint64_t& to, uint64_t value) {
#if defined(__x86_64__)
  asm volatile("movq %1, %0" : "=m"(to) : "r"(value));
#else
  __atomic_store_n(&to, value, __ATOMIC_RELAXED);
#endif
}

// `value` xor a word in memory, in one instruction.
__attribute__((always_inline)) inline uint64_t xor_with(uint64_t value,
                                                        const volatile uint64_t& word) {
#if defined(__x86_64__)
  asm volatile("xorq %1, %0" : "+r"(value) : "m"(word) : "cc");
  return value;
#else
  return value ^ word;
#endif
}

// `value` and the lower half of a word in memory, added in one instruction.
__attribute__((always_inline)) inline uint32_t sum_with(uint32_t value,
                                                        const volatile uint64_t& word) {
#if defined(__x86_64__)
  asm volatile("addl %1, %0" : "+r"(value) : "m"(word) : "cc");
  return value;
#else
  return value + static_cast<uint32_t>(word);
#endif
}

// Whether no bit of a word in memory is set, in one instruction.
template <class Word>
__attribute__((always_inline)) inline bool is_zero(const volatile Word& word) {
#if defined(__x86_64__)
  bool is;
  if constexpr (sizeof(Word) == sizeof(uint32_t)) {
    asm volatile("cmpl $0, %1" : "=@ccz"(is) : "m"(word));
  } else {
    static_assert(sizeof(Word) == sizeof(uint64_t));
    asm volatile("cmpq $0, %1" : "=@ccz"(is) : "m"(word));
  }
  return is;
#else
  return word == 0;
#endif
}

}  // namespace arctrace
