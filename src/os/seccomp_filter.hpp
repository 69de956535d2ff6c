// Predicts a seccomp filter's verdict on a system call without making the call. A filter
// is a program of classic BPF, which only jumps forward, so one walk covers all of its
// paths.
#pragma once

#include <linux/filter.h>

#include <cstdint>

namespace arctrace {

// A system call that has not been made yet.
struct ForeseenCall {
  long number;
  uint32_t known;  // bit i: arguments[i] is known; otherwise it may be anything
  uint64_t arguments[6];
};

// Ordered from the best to the worst.
enum class FilterVerdict : uint8_t {
  kAllowed,
  kFails,  // at worst the call fails with an errno, which only we see
  kHarms,  // the program or its supervisor may notice the call
};

// The walk's memory, one for each instruction.
struct FilterState {
  uint32_t accumulator;
  uint32_t index;
  bool is_reached;
  bool knows_accumulator;
  bool knows_index;
};

// The worst verdict that a filter of `length` instructions may return for the call. A
// filter that the kernel would not accept gets kHarms. `states` has `length` elements.
FilterVerdict judge_call(const sock_filter* program, uint32_t length,
                         const ForeseenCall& call, FilterState* states);

// The uses (enum KernelUse) that the filter forbids. Each system call that we make is
// judged. `is_map`: the session's buffer is a BPF map. `states`: as for judge_call().
uint32_t forbidden_uses(const sock_filter* program, uint32_t length, bool is_map,
                        FilterState* states);

}  // namespace arctrace
