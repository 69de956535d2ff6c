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

// Whether a pointer in memory is less than `value`, in the same way.
template <class T>
__attribute__((always_inline)) inline bool is_less(T* const& pointer, T* value) {
#if defined(__x86_64__)
  bool is;
  asm volatile("cmpq %2, %1" : "=@ccb"(is) : "m"(pointer), "r"(value));
  return is;
#else
  return reinterpret_cast<uintptr_t>(pointer) < reinterpret_cast<uintptr_t>(value);
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
