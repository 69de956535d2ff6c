#include "writer_shim/functions/entry_hooks.hpp"

#include <cstdint>

#include "src/base/shared_atomics.hpp"
#include "writer_shim/arch/call_stubs.h"
#include "writer_shim/arch/kept_vectors.hpp"
#include "writer_shim/arch/machine.hpp"
#include "writer_shim/filter/function_filter.hpp"
#include "writer_shim/functions/functions_gate.hpp"
#include "writer_shim/plt/call_table.hpp"
#include "writer_shim/unwind/frame_finder.hpp"
#include "writer_shim/unwind/frame_rule.hpp"

namespace arctrace::shim {
namespace {

// By where a hook returns to: that address in the upper 48 bits, and in the lower 16 how
// far behind the function's beginning it is. One word, so that no lock is needed.
constexpr uint64_t kSites = uint64_t{1} << 15;
constexpr unsigned kDistanceBits = 16;
uint64_t sites[kSites];
uint32_t have_sites;  // nonzero: some of them are used

__attribute__((noinline)) uintptr_t learn_function(uintptr_t hook_site, uint64_t& site) {
  uintptr_t begin = 0;
  keep_vectors_around([&] { begin = find_frame_rule(hook_site - 1).function; });
  const uintptr_t distance = hook_site - begin;
  if (begin == 0 || distance >> kDistanceBits != 0) return hook_site;
  IpcAtomics::store_relaxed(have_sites, uint32_t{1});
  IpcAtomics::store_relaxed(site, uint64_t{hook_site} << kDistanceBits | distance);
  return begin;
}

// Where the function begins whose hook returns to `hook_site`; without unwind tables,
// that itself.
uintptr_t function_of(uintptr_t hook_site) {
  uint64_t& site = sites[(hook_site >> 4 ^ hook_site >> 19) % kSites];
  const uint64_t known = IpcAtomics::load_relaxed(site);
  if (__builtin_expect(known >> kDistanceBits == hook_site, 1)) {
    return hook_site - (known & ((uint64_t{1} << kDistanceBits) - 1));
  }
  return learn_function(hook_site, site);
}

struct EnteredFunction {
  uintptr_t address;
  const uintptr_t* stack_pointer;  // behind the return address of our own hook
  uintptr_t* place;                // of the function's
  uintptr_t frame_pointer;         // of its caller
};

// By value, so that who enters keeps it in registers.
__attribute__((noinline)) int begin_with_values(EnteredFunction function, uint32_t flags,
                                                uint32_t values) {
  uintptr_t arguments[ARCTRACE_SHIM_ARGUMENTS_MAX];
  for (size_t i = 0; i < ARCTRACE_SHIM_ARGUMENTS_MAX; ++i) {
    arguments[i] = machine::argument_of(function.stack_pointer - 1, i);
  }
  return arctrace_shim_call_begin_with(function.address, function.place,
                                       function.frame_pointer, flags, values, arguments);
}

void function_begins(const EnteredFunction& function) {
  const FunctionChoice choice = function_choice(function.address);
  uint32_t flags = choice.flags;
  if (returns_to_stub(*function.place)) flags |= ARCTRACE_SHIM_RETURNS_TO_SHIM;
  const int through = __builtin_expect(choice.values != 0, 0)
                          ? begin_with_values(function, flags, choice.values)
                          : arctrace_shim_call_begin(function.address, function.place,
                                                     function.frame_pointer, flags);
  if (through != 0) {
    *function.place = reinterpret_cast<uintptr_t>(arctrace_exchanged_returns);
  }
}

// The unwind rule for what we put in a return address's place needs it.
bool is_ready() { return functions_are_recorded() && arctrace_pending_calls != nullptr; }

}  // namespace

void forget_entry_hooks() {
  if (IpcAtomics::load_relaxed(have_sites) == 0) return;
  for (uint64_t& site : sites) IpcAtomics::store_relaxed(site, uint64_t{0});
}

}  // namespace arctrace::shim

using namespace arctrace::shim;

// `stack_pointer`: behind the hook's return address.
extern "C" __attribute__((flatten)) void arctrace_fentry_called(uintptr_t hook_site,
                                                                uintptr_t* stack_pointer,
                                                                uintptr_t frame_pointer) {
  // The first thing on the stack is the function's own return address.
  if (!is_ready()) return;
  function_begins({function_of(hook_site), stack_pointer, stack_pointer, frame_pointer});
}

// Called when the function has made its frame, of which only unwind tables know the size.
extern "C" __attribute__((flatten)) void arctrace_mcount_called(
    uintptr_t hook_site, uintptr_t* stack_pointer, const uintptr_t* frame_pointer) {
  if (!is_ready()) return;
  arctrace_shim_call call{};
  call.stack_pointer = reinterpret_cast<uintptr_t>(stack_pointer);
  call.frame_pointer = reinterpret_cast<uintptr_t>(frame_pointer);
  call.hook_site = hook_site;
  locate_frame(0, call);
  if ((call.flags & ARCTRACE_SHIM_LOCATION_GUESSED) != 0) return;
  auto* place = reinterpret_cast<uintptr_t*>(call.location) - 1;
  function_begins({function_of(hook_site), stack_pointer, place, *frame_pointer});
}
