#include "writer_shim/patch/flooding.hpp"

#include <arctrace/format.h>
#include <sys/mman.h>

#include "src/api/shim_interface.h"
#include "src/base/memory.hpp"
#include "src/base/raw_syscall.hpp"
#include "src/base/shared_atomics.hpp"

namespace arctrace::shim {
namespace {

const PatchedFunction* patched;
uint64_t* function_gates;
uint32_t patched_count;
uint32_t* calls_of;  // of each function, in the block that is looked at

constexpr uint32_t kNone = UINT32_MAX;
// What fewer of a block's calls are of than one in so many does not fill it.
constexpr uint64_t kFew = 8;

uint32_t find_patched(uint64_t function) {
  uint32_t low = 0;
  uint32_t high = patched_count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (patched[middle].function < function) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < patched_count && patched[low].function == function ? low : kNone;
}

bool is_off(uint32_t index) {
  return IpcAtomics::load_relaxed(function_gates[index]) == patched[index].copy;
}

struct CallCounts {
  uint64_t all = 0;      // calls in the block
  uint64_t matched = 0;  // of patched functions that are not asked for by name
  uint64_t on = 0;       // of these, of functions that are on
};

// The block may be one into which the program has written by mistake.
CallCounts count_calls(std::byte* begin, const std::byte* end) {
  CallCounts counts;
  fill_zero(calls_of, uint64_t{patched_count} * sizeof *calls_of);
  while (end - begin >= static_cast<long>(ARCTRACE_COMPACT_HEAD_SIZE)) {
    const uint32_t word0 = IpcAtomics::load_relaxed(*reinterpret_cast<uint32_t*>(begin));
    const uint32_t length = word0 & ARCTRACE_LENGTH_MASK;
    if (length < ARCTRACE_COMPACT_HEAD_SIZE || length % sizeof word0 != 0 ||
        length > end - begin) {
      break;
    }
    if (word0 == ARCTRACE_WORD0(ARCTRACE_TYPE_ENTER, length) &&
        length >= ARCTRACE_COMPACT_HEAD_SIZE + sizeof(uint64_t)) {
      uint64_t key;
      __builtin_memcpy(&key, begin + ARCTRACE_COMPACT_HEAD_SIZE, sizeof key);
      const uint32_t index = find_patched(key);
      ++counts.all;
      if (index != kNone && patched[index].is_named == 0) {
        ++counts.matched;
        if (!is_off(index)) {
          ++counts.on;
          ++calls_of[index];
        }
      }
    }
    begin += length;
  }
  return counts;
}

uint32_t most_called() {
  uint32_t most = 0;
  for (uint32_t i = 1; i < patched_count; ++i) {
    if (calls_of[i] > calls_of[most]) most = i;
  }
  return most;
}

// Whether functions that are on have too many of the calls.
bool is_flooded(const CallCounts& counts) {
  return counts.on * 2 > counts.matched && counts.on * kFew >= counts.all;
}

}  // namespace

void watch_flooding(const PatchedFunction* functions, uint64_t* gates, uint32_t count) {
  calls_of = static_cast<uint32_t*>(sys::map(uint64_t{count} * sizeof *calls_of,
                                             PROT_READ | PROT_WRITE,
                                             MAP_PRIVATE | MAP_ANONYMOUS, -1));
  if (calls_of == nullptr) return;
  patched = functions;
  function_gates = gates;
  patched_count = count;
  arctrace_shim_set_full_block_hook(switch_off_flooding);
}

uint32_t switch_off_flooding(void* begin, const void* end, uint64_t* switched_off) {
  CallCounts counts =
      count_calls(static_cast<std::byte*>(begin), static_cast<const std::byte*>(end));
  uint32_t number = 0;
  while (is_flooded(counts) && number < ARCTRACE_SHIM_SWITCHED_OFF_MAX) {
    const uint32_t index = most_called();
    if (calls_of[index] == 0) break;
    // Relaxed: both code addresses that the gate may hold have been there all along. The
    // processor's jump through it sees one of them, as the word is aligned.
    IpcAtomics::store_relaxed(function_gates[index], patched[index].copy);
    counts.on -= calls_of[index];
    calls_of[index] = 0;
    switched_off[number++] = patched[index].function;
  }
  return number;
}

}  // namespace arctrace::shim
