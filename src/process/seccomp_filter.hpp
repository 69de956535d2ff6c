// What a seccomp filter says of a system call, found without making it: filters are
// programs of classic BPF, which only jump forward, so one walk sees all of their paths.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <cstdint>

namespace arctrace {

// What is known of a call before it is made.
struct ForeseenCall {
  long number;
  uint32_t known;  // bit i: arguments[i] is so; else it may be anything
  uint64_t arguments[6];
};

// From the best to the worst.
enum class FilterVerdict : uint8_t {
  kAllowed,
  kFails,  // with an error number, if anything: nobody else sees it
  kHarms,  // the program, or who watches it, may notice
};

// The walk's memory, one for each instruction.
struct FilterState {
  uint32_t accumulator;
  uint32_t index;
  bool is_reached;
  bool knows_accumulator;
  bool knows_index;
};

// The worst that a filter of `length` instructions may say of the call. What is no
// program as the kernel takes it harms.
FilterVerdict judge_call(const sock_filter* program, uint32_t length,
                         const ForeseenCall& call, FilterState* states);

}  // namespace arctrace
