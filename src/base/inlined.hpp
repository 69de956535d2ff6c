// What the fast path is written with, so that the compiler makes few instructions of it.
#pragma once

#include <cstdint>

// After a lambda's parameters: it is inlined before the compiler decides which variables
// stay in registers. Otherwise those that it captures are kept in memory.
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

// The same pointer, of which the compiler does not know how it was computed: it keeps the
// pointer, and does not compute it anew wherever it is used.
template <class T>
__attribute__((always_inline)) inline T* kept_pointer(T* pointer) {
  asm("" : "+r"(pointer));
  return pointer;
}

// The same value in a register in which no entry point has an argument: gcc gives the
// arguments' registers away to what it uses more often, and moves the arguments.
template <int kIndex, class T>
__attribute__((always_inline)) inline T kept_beside_arguments(T value) {
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

// The same number, of which the compiler does not know how it was computed.
__attribute__((always_inline)) inline uintptr_t kept_number(uintptr_t number) {
  asm("" : "+r"(number));
  return number;
}

// What is in memory, read although it was read or stored before, so that no register is
// kept for it.
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

// Whether a word in memory has this value, in the same way; compilers make one comparison
// of two neighbouring words, for which they put the values together.
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

// Whether a word in memory is greater than `value`, without a sign, in the same way.
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

// Moves a pointer in memory on, in the same way: the sum needs no register.
template <class T>
__attribute__((always_inline)) inline void advance(T*& pointer, uint64_t bytes) {
#if defined(__x86_64__)
  asm volatile("addq %1, %0" : "+m"(pointer) : "er"(bytes) : "cc");
#else
  pointer = reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(pointer) + bytes);
#endif
}

// Stores a word that other threads may read, in the same way; relaxed.
__attribute__((always_inline)) inline void store_word(uint64_t& to, uint64_t value) {
#if defined(__x86_64__)
  asm volatile("movq %1, %0" : "=m"(to) : "r"(value));
#else
  __atomic_store_n(&to, value, __ATOMIC_RELAXED);
#endif
}

// `value` xor a word in memory, in the same way.
__attribute__((always_inline)) inline uint64_t xor_with(uint64_t value,
                                                        const volatile uint64_t& word) {
#if defined(__x86_64__)
  asm volatile("xorq %1, %0" : "+r"(value) : "m"(word) : "cc");
  return value;
#else
  return value ^ word;
#endif
}

// `value` and the lower half of a word in memory, added in the same way.
__attribute__((always_inline)) inline uint32_t sum_with(uint32_t value,
                                                        const volatile uint64_t& word) {
#if defined(__x86_64__)
  asm volatile("addl %1, %0" : "+r"(value) : "m"(word) : "cc");
  return value;
#else
  return value + static_cast<uint32_t>(word);
#endif
}

// Whether no bit of a word in memory is set, in the same way.
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
