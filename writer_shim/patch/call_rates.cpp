// Counts the calls of patched functions in full blocks, and switches functions off.
#include "writer_shim/patch/call_rates.hpp"

#include <arctrace/format.h>
#include <sys/mman.h>

#include "src/api/shim_interface.h"
#include "src/base/large_table.hpp"
#include "src/base/memory.hpp"
#include "src/base/raw_syscall.hpp"
#include "src/base/shared_atomics.hpp"

namespace arctrace::shim {
namespace {

// The functions of one image.
struct Watched {
  const PatchTable* image;
  uint32_t* calls_of;  // of each function, in the block that is examined
  uint32_t is_on;      // the module is loaded

  uint32_t count() const { return image->function_count; }
  const PatchedFunction* functions() const {
    return reinterpret_cast<const PatchedFunction*>(image->functions);
  }
  uint64_t& gate(uint32_t index) const {
    return reinterpret_cast<uint64_t*>(image->gates)[index];
  }
  bool is_patched(uint32_t index) const {
    return reinterpret_cast<const PatchSlots*>(image->slots)->entries[index] != 0;
  }
  bool is_off(uint32_t index) const {
    return IpcAtomics::load_relaxed(gate(index)) == gate_when_off(functions()[index]);
  }
};

ARCTRACE_LARGE_TABLE constinit Watched watched[kPatchedModulesMax]{};
uint32_t watched_count;

constexpr uint32_t kNone = UINT32_MAX;
// If fewer than one in so many of a block's calls are of a function, it does not fill the
// block.
constexpr uint64_t kFew = 8;

// A function of an image; null: none.
struct Found {
  Watched* in = nullptr;
  uint32_t index = 0;
};

uint32_t find_function(const Watched& in, uint64_t function) {
  const PatchedFunction* functions = in.functions();
  uint32_t low = 0;
  uint32_t high = in.count();
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (functions[middle].function < function) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < in.count() && functions[low].function == function ? low : kNone;
}

template <class Act>
void for_each_watched(const Act& act) {
  const uint32_t count = IpcAtomics::load_acquire(watched_count);
  for (uint32_t i = 0; i < count; ++i) {
    if (IpcAtomics::load_acquire(watched[i].is_on) != 0) act(watched[i]);
  }
}

Found find_patched(uint64_t function) {
  Found found;
  for_each_watched([&](Watched& one) {
    if (found.in != nullptr ||
        function - one.image->code_low >= one.image->code_high - one.image->code_low) {
      return;
    }
    const uint32_t index = find_function(one, function);
    // Another image may have the function, one of an earlier recording.
    if (index != kNone && one.is_patched(index)) found = {&one, index};
  });
  return found;
}

struct CallCounts {
  uint64_t all = 0;      // calls in the block
  uint64_t matched = 0;  // of patched functions that are not asked for by name
  uint64_t on = 0;       // of these, of functions that are on
};

// The block may be one that the program has overwritten by mistake.
CallCounts count_calls(std::byte* begin, const std::byte* end, uint32_t head_size) {
  CallCounts counts;
  for_each_watched([](Watched& one) {
    fill_zero(one.calls_of, uint64_t{one.count()} * sizeof *one.calls_of);
  });
  while (end - begin >= static_cast<long>(head_size)) {
    const uint32_t word0 = IpcAtomics::load_relaxed(*reinterpret_cast<uint32_t*>(begin));
    const uint32_t length = word0 & ARCTRACE_LENGTH_MASK;
    if (length < head_size || length % sizeof word0 != 0 || length > end - begin) {
      break;
    }
    if (word0 == ARCTRACE_WORD0(ARCTRACE_TYPE_ENTER, length) &&
        length >= head_size + sizeof(uint64_t)) {
      uint64_t key;
      __builtin_memcpy(&key, begin + head_size, sizeof key);
      const Found found = find_patched(key);
      ++counts.all;
      if (found.in != nullptr && found.in->functions()[found.index].is_named == 0) {
        ++counts.matched;
        if (!found.in->is_off(found.index)) {
          ++counts.on;
          ++found.in->calls_of[found.index];
        }
      }
    }
    begin += length;
  }
  return counts;
}

// The function with the most calls; null: none is called.
Found most_called() {
  Found most;
  uint32_t calls = 0;
  for_each_watched([&](Watched& one) {
    for (uint32_t i = 0; i < one.count(); ++i) {
      if (one.calls_of[i] <= calls) continue;
      calls = one.calls_of[i];
      most = {&one, i};
    }
  });
  return most;
}

// Whether functions that are on have too many of the calls.
bool is_throttled(const CallCounts& counts) {
  return counts.on * 2 > counts.matched && counts.on * kFew >= counts.all;
}

}  // namespace

void watch_call_rates(const PatchTable& image) {
  for (uint32_t i = 0; i < watched_count; ++i) {
    if (watched[i].image != &image) continue;
    return IpcAtomics::store_release(watched[i].is_on, uint32_t{1});
  }
  if (watched_count == kPatchedModulesMax) return;
  Watched& one = watched[watched_count];
  one.calls_of = static_cast<uint32_t*>(
      sys::map(uint64_t{image.function_count} * sizeof *one.calls_of,
               PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1));
  if (one.calls_of == nullptr) return;
  one.image = &image;
  one.is_on = 1;
  // Release: a thread that sees the number sees the functions.
  IpcAtomics::store_release(watched_count, watched_count + 1);
  if (watched_count == 1) arctrace_shim_set_full_block_hook(throttle_functions);
}

void stop_watching(const PatchTable& image) {
  for (uint32_t i = 0; i < watched_count; ++i) {
    if (watched[i].image == &image) {
      IpcAtomics::store_relaxed(watched[i].is_on, uint32_t{0});
    }
  }
}

uint32_t throttle_functions(void* begin, const void* end, uint32_t head_size,
                            uint64_t* switched_off) {
  CallCounts counts = count_calls(static_cast<std::byte*>(begin),
                                  static_cast<const std::byte*>(end), head_size);
  uint32_t number = 0;
  while (is_throttled(counts) && number < ARCTRACE_SHIM_SWITCHED_OFF_MAX) {
    const Found most = most_called();
    if (most.in == nullptr) break;
    const PatchedFunction& function = most.in->functions()[most.index];
    // Relaxed: the code at both addresses that the gate may have has been there all
    // along. The processor's jump through it sees one of them, as the word is aligned.
    IpcAtomics::store_relaxed(most.in->gate(most.index), gate_when_off(function));
    counts.on -= most.in->calls_of[most.index];
    most.in->calls_of[most.index] = 0;
    switched_off[number++] = function.function;
  }
  return number;
}

}  // namespace arctrace::shim
