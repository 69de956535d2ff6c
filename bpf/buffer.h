// The buffer as the value of a map, and the operations on its words, which other CPUs and
// processes change. bpf/append.h is written on these; tests have their own.
#pragma once

#include "bpf/kernel_types.h"
#include "bpf/layout.h"

const volatile struct buffer_layout layout;  // the only constant, so all of .rodata

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __uint(key_size, 4);
  __uint(value_size, 4096);  // set to the buffer's size before loading
} buffer SEC(".maps");

// The kernel inlines this look-up, as the map is an array.
static __always_inline uint8_t* buffer_base(void) {
  const uint32_t zero = 0;
  return bpf_map_lookup_elem(&buffer, &zero);
}

static __always_inline uint32_t this_cpu(void) { return bpf_get_smp_processor_id(); }
static __always_inline uint64_t monotonic_ns(void) { return bpf_ktime_get_ns(); }

#define UNROLLED _Pragma("unroll")
#define NOT_UNROLLED _Pragma("clang loop unroll(disable)")

// A function that the verifier checks once, apart from its callers.
#define VERIFIED_ALONE __attribute__((noinline))

// Hides a value's origin from the compiler, so that the register which is checked is the
// one that is used.
#define OPAQUE(value) asm volatile("" : "+r"(value))

// `value`, or 0 if it is not below `limit`. This checks the very register that is used
// from here on; after another check the compiler might use a copy from before.
static __always_inline uint64_t clamped(uint64_t value, uint64_t limit) {
  asm volatile("if %0 < %1 goto +1; %0 = 0" : "+r"(value) : "r"(limit));
  return value;
}

// Before Linux 6.10 the verifier knows the bounds of a product only if its second factor
// is the constant, and the compiler may emit either order.
static __always_inline uint64_t times(uint64_t value, uint64_t constant) {
  asm volatile("%0 *= %1" : "+r"(value) : "r"(constant));
  return value;
}

// Stores a field of a record. BPF may store a u64 at a multiple of 4 as a whole; of a
// packed struct's field the compiler assumes that it may not.
#define PUT(field, value) \
  (*(volatile __typeof__(field)*)(void*)&(field) = (__typeof__(field))(value))

static __always_inline uint32_t load_u32(const uint32_t* word) {
  return *(const volatile uint32_t*)word;
}
static __always_inline uint64_t load_u64(const uint64_t* word) {
  return *(const volatile uint64_t*)word;
}
static __always_inline void store_u32(uint32_t* word, uint32_t value) {
  *(volatile uint32_t*)word = value;
}
static __always_inline void store_u64(uint64_t* word, uint64_t value) {
  *(volatile uint64_t*)word = value;
}

// Release stores. x86 keeps stores in order, and the JIT translates instructions one by
// one; on other machines the exchange is BPF's only barrier.
static __always_inline void store_release_u32(uint32_t* word, uint32_t value) {
#if defined(__TARGET_ARCH_x86)
  asm volatile("" ::: "memory");
  store_u32(word, value);
#else
  __sync_lock_test_and_set(word, value);
#endif
}
static __always_inline void store_release_u64(uint64_t* word, uint64_t value) {
#if defined(__TARGET_ARCH_x86)
  asm volatile("" ::: "memory");
  store_u64(word, value);
#else
  __sync_lock_test_and_set(word, value);
#endif
}

// Full barriers, as are all atomic operations of BPF that return the old value.
static __always_inline uint64_t fetch_add_u64(uint64_t* word, uint64_t value) {
  return __sync_fetch_and_add(word, value);
}
static __always_inline bool compare_exchange_u32(uint32_t* word, uint32_t expected,
                                                 uint32_t desired) {
  return __sync_val_compare_and_swap(word, expected, desired) == expected;
}
static __always_inline bool compare_exchange_u64(uint64_t* word, uint64_t expected,
                                                 uint64_t desired) {
  return __sync_val_compare_and_swap(word, expected, desired) == expected;
}
