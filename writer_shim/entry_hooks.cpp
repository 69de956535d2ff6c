#include "writer_shim/entry_hooks.hpp"

#include <cstdint>

#include "src/shared_atomics.hpp"
#include "writer_shim/call_stubs.h"
#include "writer_shim/frame_finder.hpp"
#include "writer_shim/frame_rule.hpp"
#include "writer_shim/function_choice.hpp"
#include "writer_shim/functions_gate.hpp"
#include "writer_shim/library_hooks.hpp"

namespace arctrace::shim {
namespace {

// By where a hook returns to: that address in the upper 48 bits, and in the lower 16 how
// far behind the function's beginning it is. One word, so that no lock is needed.
constexpr uint64_t kSites = uint64_t{1} << 15;
constexpr unsigned kDistanceBits = 16;
uint64_t sites[kSites];

__attribute__((noinline)) uintptr_t learn_function(uintptr_t hook_site, uint64_t& site) {
  const uintptr_t begin = find_frame_rule(hook_site - 1).function;
  const uintptr_t distance = hook_site - begin;
  if (begin == 0 || distance >> kDistanceBits != 0) return hook_site;
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

// `place`: of the function's return address; `frame_pointer`: its caller's.
void function_begins(uintptr_t hook_site, uintptr_t* place, uintptr_t frame_pointer) {
  const uintptr_t function = function_of(hook_site);
  uint32_t flags = function_flags(function);
  if (returns_to_stub(*place)) flags |= ARCTRACE_SHIM_RETURNS_TO_SHIM;
  if (arctrace_shim_call_begin(function, place, frame_pointer, flags) != 0) {
    *place = reinterpret_cast<uintptr_t>(arctrace_exchanged_returns);
  }
}

// The unwind rule for what we put in a return address's place needs it.
bool is_ready() { return functions_are_recorded() && arctrace_pending_calls != nullptr; }

}  // namespace

void forget_entry_hooks() {
  for (uint64_t& site : sites) IpcAtomics::store_relaxed(site, uint64_t{0});
}

}  // namespace arctrace::shim

using namespace arctrace::shim;

// `stack_pointer`: behind the hook's return address.
extern "C" __attribute__((flatten)) void arctrace_fentry_called(uintptr_t hook_site,
                                                                uintptr_t* stack_pointer,
                                                                uintptr_t frame_pointer) {
  // The first thing on the stack is the function's own return address.
  if (is_ready()) function_begins(hook_site, stack_pointer, frame_pointer);
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
  function_begins(hook_site, place, *frame_pointer);
}
