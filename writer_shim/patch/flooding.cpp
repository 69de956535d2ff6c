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
uint32_t* calls;  // of each function in a block; whoever has `busy` uses it
uint32_t busy;

constexpr uint32_t kNone = UINT32_MAX;

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

struct Counted {
  uint64_t all = 0, off = 0;  // calls, and those of functions that are off
};

// The block may be one into which the program has written by mistake.
Counted count_calls(const std::byte* begin, const std::byte* end) {
  Counted counted;
  fill_zero(calls, uint64_t{patched_count} * sizeof *calls);
  while (end - begin >= static_cast<long>(ARCTRACE_COMPACT_HEAD_SIZE)) {
    uint32_t word0;
    __builtin_memcpy(&word0, begin, sizeof word0);
    const uint32_t length = word0 & ARCTRACE_LENGTH_MASK;
    if (length < ARCTRACE_COMPACT_HEAD_SIZE || length > end - begin) break;
    if (word0 == ARCTRACE_WORD0(ARCTRACE_TYPE_ENTER, length) &&
        length >= ARCTRACE_COMPACT_HEAD_SIZE + sizeof(uint64_t)) {
      uint64_t key;
      __builtin_memcpy(&key, begin + ARCTRACE_COMPACT_HEAD_SIZE, sizeof key);
      const uint32_t index = find_patched(key);
      if (index != kNone && patched[index].is_named == 0) {
        ++counted.all;
        if (is_off(index)) {
          ++counted.off;
        } else {
          ++calls[index];
        }
      }
    }
    begin += length;
  }
  return counted;
}

uint32_t most_called() {
  uint32_t most = 0;
  for (uint32_t i = 1; i < patched_count; ++i) {
    if (calls[i] > calls[most]) most = i;
  }
  return most;
}

}  // namespace

void watch_flooding(const PatchedFunction* functions, uint64_t* gates, uint32_t count) {
  calls = static_cast<uint32_t*>(sys::map(uint64_t{count} * sizeof *calls,
                                          PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS, -1));
  if (calls == nullptr) return;
  patched = functions;
  function_gates = gates;
  patched_count = count;
  arctrace_shim_set_full_block_hook(switch_off_flooding);
}

uint32_t switch_off_flooding(const void* begin, const void* end, uint64_t* switched_off) {
  uint32_t free = 0;
  if (!IpcAtomics::compare_exchange_acq_rel(busy, free, uint32_t{1})) return 0;
  Counted counted = count_calls(static_cast<const std::byte*>(begin),
                                static_cast<const std::byte*>(end));
  uint32_t number = 0;
  while (counted.off * 2 < counted.all && number < ARCTRACE_SHIM_SWITCHED_OFF_MAX) {
    const uint32_t index = most_called();
    if (calls[index] == 0) break;
    IpcAtomics::store_release(function_gates[index], patched[index].copy);
    counted.off += calls[index];
    calls[index] = 0;
    switched_off[number++] = patched[index].function;
  }
  IpcAtomics::store_release(busy, uint32_t{0});
  return number;
}

}  // namespace arctrace::shim
