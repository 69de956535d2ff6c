#include "writer_shim/functions/reported_calls.hpp"

#include <cstddef>
#include <cstdint>

#include "src/api/shim_interface.h"
#include "src/base/shared_atomics.hpp"
#include "writer_shim/arch/call_stubs.h"
#include "writer_shim/arch/kept_vectors.hpp"
#include "writer_shim/arch/sleds.hpp"
#include "writer_shim/base/room.hpp"
#include "writer_shim/functions/functions_gate.hpp"
#include "writer_shim/plt/call_route.hpp"
#include "writer_shim/plt/call_table.hpp"
#include "writer_shim/unwind/frame_rule_search.hpp"

namespace arctrace::shim {
namespace {

// Addresses to which return hooks return in functions that are not recorded by them.
constexpr size_t kSites = 4096;
uint64_t unreported[kSites];
uint32_t have_unreported;  // nonzero: some words are used

uint64_t& entry_of(uintptr_t hook_site) {
  return unreported[(hook_site >> 2 ^ hook_site >> 14) % kSites];
}

// The function that is about to return, by the code that called the hook; 0: its exit is
// not recorded by that, or it is not known, like that of a part that the compiler has put
// elsewhere.
uintptr_t reporting_function(uintptr_t hook_site) {
  uint64_t& entry = entry_of(hook_site);
  if (IpcAtomics::load_relaxed(entry) == hook_site) return 0;
  uintptr_t function = 0;
  keep_vectors_around([&] { function = find_frame_rule(hook_site - 1).function; });
  if (function != 0 && reports_exit(function)) return function;
  IpcAtomics::store_relaxed(have_unreported, uint32_t{1});
  IpcAtomics::store_relaxed(entry, uint64_t{hook_site});
  return 0;
}

void enter_with_room(uintptr_t* return_slot) {
  if (!functions_gate_is_open()) return;
  auto& call = *reinterpret_cast<LibraryCall*>(return_slot[ARCTRACE_SHIM_ENTERED_CALL]);
  const uintptr_t frame_pointer = return_slot[ARCTRACE_SHIM_ENTERED_FRAME_POINTER];
  const uint64_t key = IpcAtomics::load_relaxed(call.plain.key);
  const uint32_t flags = filtered_flags(call, *return_slot);
  if ((flags & ARCTRACE_SHIM_RETURNS_TO_SHIM) != 0) {
    // It returns together with the call that it is the last act of.
    arctrace_shim_call_begin(key, return_slot, frame_pointer, flags);
  } else if (arctrace_shim_enter_reported(key, return_slot, frame_pointer, flags) != 0) {
    *return_slot = reinterpret_cast<uintptr_t>(arctrace_exchanged_returns);
  }
}

void leave_with_room(uintptr_t* return_slot, uintptr_t hook_site) {
  if (!functions_gate_is_open() || returns_to_stub(*return_slot) ||
      arctrace_shim_exit_reported(return_slot) != 0) {
    return;
  }
  const uintptr_t function = reporting_function(hook_site);
  if (function == 0) return;
  const auto here = reinterpret_cast<uintptr_t>(return_slot);
  arctrace_shim_exit_at(function, here + sizeof(uintptr_t), here);
}

void enter(uintptr_t* return_slot) {
  with_room([=] { enter_with_room(return_slot); });
}

void leave(uintptr_t* return_slot, uintptr_t hook_site) {
  with_room([=] { leave_with_room(return_slot, hook_site); });
}

}  // namespace

void start_reported_calls() { arctrace_shim_set_slow_returns(enter, leave); }

void forget_unreported_returns() {
  if (IpcAtomics::load_relaxed(have_unreported) == 0) return;
  for (uint64_t& entry : unreported) IpcAtomics::store_relaxed(entry, uint64_t{0});
}

}  // namespace arctrace::shim
