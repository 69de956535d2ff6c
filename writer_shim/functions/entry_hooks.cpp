// The hooks mcount and __fentry__, and the return hooks. They find the function, and the
// slot of its return address, from the address to which they return; both are in a table
// after the first call.
#include <cstddef>
#include <cstdint>

#include "src/api/shim_interface.h"
#include "src/base/large_table.hpp"
#include "src/base/shared_atomics.hpp"
#include "writer_shim/arch/call_stubs.h"
#include "writer_shim/arch/loader_calls.hpp"
#include "writer_shim/arch/machine.hpp"
#include "writer_shim/arch/sled_jumps.hpp"
#include "writer_shim/base/stack_space.hpp"
#include "writer_shim/elf/loaded_objects.hpp"
#include "writer_shim/filter/function_filter.hpp"
#include "writer_shim/functions/find_sleds.hpp"
#include "writer_shim/functions/function_hooks.hpp"
#include "writer_shim/functions/functions_gate.hpp"
#include "writer_shim/plt/call_table.hpp"
#include "writer_shim/unwind/frame_finder.hpp"
#include "writer_shim/unwind/frame_rule.hpp"

namespace arctrace::shim {

namespace {

// Addresses to which return hooks return in functions that are not recorded by them.
constexpr size_t kUnrecordedMax = 4096;
ARCTRACE_LARGE_TABLE uint64_t unrecorded[kUnrecordedMax];
uint32_t have_unrecorded;  // nonzero: some words are used

uint64_t& entry_of(uintptr_t hook_site) {
  return unrecorded[(hook_site >> 2 ^ hook_site >> 14) % kUnrecordedMax];
}

// The function that is about to return, by the code that called the hook; 0: this hook
// does not record its exit, or the function is not known, as for a part that the compiler
// has put elsewhere.
uintptr_t exit_hooked_function(uintptr_t hook_site) {
  uint64_t& entry = entry_of(hook_site);
  if (IpcAtomics::load_relaxed(entry) == hook_site) return 0;
  uintptr_t function = 0;
  keep_vectors_around([&] { function = find_frame_rule(hook_site - 1).function; });
  if (function != 0 && is_exit_hooked(function)) return function;
  IpcAtomics::store_relaxed(have_unrecorded, uint32_t{1});
  IpcAtomics::store_relaxed(entry, uint64_t{hook_site});
  return 0;
}

void enter_with_stack_space(uintptr_t* return_slot) {
  if (!functions_gate_is_open()) return;
  auto& call = *reinterpret_cast<LibraryCall*>(return_slot[ARCTRACE_SHIM_ENTERED_CALL]);
  const uintptr_t frame_pointer = return_slot[ARCTRACE_SHIM_ENTERED_FRAME_POINTER];
  const uint64_t key = IpcAtomics::load_relaxed(call.plain.key);
  const uint32_t flags = filtered_flags(call, *return_slot);
  if ((flags & ARCTRACE_SHIM_RETURNS_TO_SHIM) != 0) {
    // This call returns together with the one whose last act it is.
    arctrace_shim_call_begin(key, return_slot, frame_pointer, flags);
  } else if (arctrace_shim_enter_exit_hooked(key, return_slot, frame_pointer, flags) !=
             0) {
    *return_slot = reinterpret_cast<uintptr_t>(arctrace_exchanged_returns);
  }
}

void leave_with_stack_space(uintptr_t* return_slot, uintptr_t hook_site) {
  if (!functions_gate_is_open() || returns_to_stub(*return_slot) ||
      arctrace_shim_leave_exit_hooked(return_slot) != 0) {
    return;
  }
  const uintptr_t function = exit_hooked_function(hook_site);
  if (function == 0) return;
  const auto here = reinterpret_cast<uintptr_t>(return_slot);
  arctrace_shim_exit_at(function, here + sizeof(uintptr_t), here);
}

void enter(uintptr_t* return_slot) {
  with_stack_space([=] { enter_with_stack_space(return_slot); });
}

void leave(uintptr_t* return_slot, uintptr_t hook_site) {
  with_stack_space([=] { leave_with_stack_space(return_slot, hook_site); });
}

}  // namespace

void start_exit_hooked_calls() { arctrace_shim_set_slow_returns(enter, leave); }

void forget_unrecorded_returns() {
  if (IpcAtomics::load_relaxed(have_unrecorded) == 0) return;
  for (uint64_t& entry : unrecorded) IpcAtomics::store_relaxed(entry, uint64_t{0});
}

namespace {

// A site is the address to which a hook returns, in the upper 48 bits of a word, and its
// distance from the function's beginning in the lower 15. One word needs no lock. The bit
// in between says that the hook is called when the frame pointer is 16 below the CFA, as
// it is once a function has set it up.
constexpr uint64_t kSites = uint64_t{1} << 15;
constexpr unsigned kDistanceBits = 15;
constexpr unsigned kSiteShift = kDistanceBits + 1;
constexpr uint64_t kHasFramePointer = uint64_t{1} << kDistanceBits;
ARCTRACE_LARGE_TABLE uint64_t sites[kSites];
uint32_t have_sites;  // nonzero: some words are used

// A bit in a word's site: a hook of another kind records the function. No address of a
// program has this bit.
constexpr uint64_t kRecordedElsewhere = uint64_t{1} << 47;

// The module of the last function that was looked up: the beginning of its range, with
// the bits below. 0: none yet.
uint64_t last_module;
constexpr uint64_t kModuleIsKnown = 1;
constexpr uint64_t kModuleReportsEntries = 2;

// Whether the module at `address` has functions that call __cyg_profile_func_enter.
bool module_reports_entries(uintptr_t address) {
  const uintptr_t begin = find_loaded_object(address).range.low;
  const uint64_t last = IpcAtomics::load_relaxed(last_module);
  if ((last & ~kModuleReportsEntries) == (begin | kModuleIsKnown)) {
    return (last & kModuleReportsEntries) != 0;
  }
  ModuleImage image;
  if (!read_loaded_module(address, image)) return false;
  const bool reports = image.imports("__cyg_profile_func_enter");
  if (begin % 4 == 0) {
    IpcAtomics::store_relaxed(
        last_module, begin | kModuleIsKnown | (reports ? kModuleReportsEntries : 0));
  }
  return reports;
}

// Whether the function has another hook that records it. Takes no lock: a task that
// shares another thread's storage would take one as that thread.
bool has_another_hook(uintptr_t function, uintptr_t hook_site) {
  return has_jump(function) || module_reports_entries(hook_site);
}

// The beginning of the function whose hook returns to `hook_site`; `hook_site` itself if
// there are no unwind tables; 0 if a hook of another kind records the function.
__attribute__((noinline)) uintptr_t learn_function(uintptr_t hook_site, uint64_t& site) {
  const uint64_t elsewhere = (hook_site | kRecordedElsewhere) << kSiteShift;
  if (IpcAtomics::load_relaxed(site) == elsewhere) return 0;
  FrameRule rule;
  bool is_elsewhere = false;
  keep_vectors_around([&] {
    rule = find_frame_rule(hook_site - 1);
    is_elsewhere = rule.function != 0 && has_another_hook(rule.function, hook_site);
  });
  const uintptr_t begin = rule.function;
  const bool has_frame_pointer =
      rule.base == FrameRule::Base::kFramePointer && rule.offset == 16;
  const uintptr_t distance = hook_site - begin;
  if (begin == 0 || distance >> kDistanceBits != 0) return hook_site;
  IpcAtomics::store_relaxed(have_sites, uint32_t{1});
  const uint64_t word = uint64_t{hook_site} << kSiteShift | distance |
                        (has_frame_pointer ? kHasFramePointer : 0);
  IpcAtomics::store_relaxed(site, is_elsewhere ? elsewhere : word);
  return is_elsewhere ? 0 : begin;
}

__attribute__((noinline)) uintptr_t learn_with_stack_space(uintptr_t hook_site,
                                                           uint64_t& site) {
  uintptr_t function = 0;
  with_stack_space([&] { function = learn_function(hook_site, site); });
  return function;
}

inline uint64_t& site_of(uintptr_t hook_site) {
  return sites[(hook_site >> 4 ^ hook_site >> 19) % kSites];
}
inline uintptr_t distance_of(uint64_t word) { return word & (kHasFramePointer - 1); }

// Sets `function` to the beginning of the function whose hook returns to `hook_site`.
// False: another hook records it.
__attribute__((always_inline)) inline bool find_function(uintptr_t hook_site,
                                                         uintptr_t& function) {
  uint64_t& site = site_of(hook_site);
  const uint64_t known = IpcAtomics::load_relaxed(site);
  if (__builtin_expect(known >> kSiteShift == hook_site, 1)) {
    function = hook_site - distance_of(known);
    return true;
  }
  function = learn_with_stack_space(hook_site, site);
  return function != 0;
}

struct EnteredFunction {
  uintptr_t address;
  const uintptr_t* stack_pointer;  // above the return address of our own hook
  uintptr_t* return_slot;          // of the function itself
  uintptr_t frame_pointer;         // of its caller
};

// The function is passed by value, so that function_begins() keeps the members in
// registers.
__attribute__((noinline)) int begin_with_args(EnteredFunction function, uint32_t flags,
                                              uint32_t arg_specs) {
  uintptr_t arguments[ARCTRACE_SHIM_ARGUMENTS_MAX];
  for (size_t i = 0; i < ARCTRACE_SHIM_ARGUMENTS_MAX; ++i) {
    arguments[i] = machine::argument_of(function.stack_pointer - 1, i);
  }
  return arctrace_shim_call_begin_with_args(function.address, function.return_slot,
                                            function.frame_pointer, flags, arg_specs,
                                            arguments);
}

void function_begins(const EnteredFunction& function) {
  const FunctionFilter filter = function_filter(function.address);
  uint32_t flags = filter.flags;
  if (__builtin_expect((flags & ARCTRACE_SHIM_ENTRY_ONLY) != 0, 0)) {
    arctrace_shim_entry_only_call(function.address, function.return_slot,
                                  function.frame_pointer, flags, 1);
    return;
  }
  if (returns_to_stub(*function.return_slot)) flags |= ARCTRACE_SHIM_RETURNS_TO_SHIM;
  const int through =
      __builtin_expect(filter.arg_specs != 0, 0)
          ? begin_with_args(function, flags, filter.arg_specs)
          : arctrace_shim_call_begin(function.address, function.return_slot,
                                     function.frame_pointer, flags);
  if (through != 0) {
    *function.return_slot = reinterpret_cast<uintptr_t>(arctrace_exchanged_returns);
  }
}

// Takes a call of mcount.
void mcount_called(uintptr_t hook_site, uintptr_t* stack_pointer,
                   const uintptr_t* frame_pointer) {
  arctrace_shim_call call{};
  call.stack_pointer = reinterpret_cast<uintptr_t>(stack_pointer);
  call.frame_pointer = reinterpret_cast<uintptr_t>(frame_pointer);
  call.hook_site = hook_site;
  locate_frame(0, call);
  if (__builtin_expect((call.flags & ARCTRACE_SHIM_CFA_GUESSED) != 0, 0)) {
    // This is the case without unwind tables: libc's mcount, too, takes the caller's
    // return address to be beside the frame pointer.
    constexpr uintptr_t kFrameMax = uintptr_t{1} << 20;
    const uintptr_t distance = call.frame_pointer - call.stack_pointer;
    if (distance > kFrameMax || call.frame_pointer % sizeof(uintptr_t) != 0) return;
    call.cfa = call.frame_pointer + 2 * sizeof(uintptr_t);
  }
  auto* return_slot = reinterpret_cast<uintptr_t*>(call.cfa) - 1;
  // With split stacks gcc calls mcount before the function makes its frame, too. Its
  // tables do not count the static chain that it pushes around that call.
  if (__builtin_expect(return_slot == stack_pointer, 0) &&
      keeps_static_chain(hook_site)) {
    ++return_slot;
  }
  uintptr_t function = 0;
  if (!find_function(hook_site, function)) return;
  function_begins({function, stack_pointer, return_slot, *frame_pointer});
}

// Whether the unwind rule for exchanged return addresses can find the pending calls.
bool is_ready() {
  return functions_gate_is_open() && arctrace_unwinding.pending_calls != nullptr;
}

}  // namespace

void forget_entry_hooks() {
  forget_unrecorded_returns();
  IpcAtomics::store_relaxed(last_module, uint64_t{0});
  if (IpcAtomics::load_relaxed(have_sites) == 0) return;
  for (uint64_t& site : sites) IpcAtomics::store_relaxed(site, uint64_t{0});
}

}  // namespace arctrace::shim

using namespace arctrace::shim;

// `stack_pointer`: above the hook's return address.
extern "C" __attribute__((flatten)) void arctrace_fentry_called(uintptr_t hook_site,
                                                                uintptr_t* stack_pointer,
                                                                uintptr_t frame_pointer) {
  if (!is_ready()) return;
  // The function's own return address is the first word on the stack, or the second.
  uintptr_t* const return_slot =
      keeps_static_chain(hook_site) ? stack_pointer + 1 : stack_pointer;
  uintptr_t function = 0;
  if (!find_function(hook_site, function)) return;
  function_begins({function, stack_pointer, return_slot, frame_pointer});
}

// The fast path of mcount: begins the call of a function that is known, and has set up
// its frame pointer. 0: nothing was done. Otherwise the return address beside the frame
// pointer is to be exchanged.
extern "C" int arctrace_mcount_called_fast(uintptr_t hook_site,
                                           const uintptr_t* frame_pointer) {
  const uint64_t known = arctrace::IpcAtomics::load_relaxed(site_of(hook_site));
  if (known >> kDistanceBits != (uint64_t{hook_site} << 1 | 1) ||
      any_function_is_filtered()) {
    return 0;
  }
  return arctrace_shim_entry_begin(hook_site - distance_of(known), frame_pointer + 1);
}

// The hook is called after the function has made its frame, whose size only unwind tables
// have.
extern "C" void arctrace_mcount_called(uintptr_t hook_site, uintptr_t* stack_pointer,
                                       const uintptr_t* frame_pointer) {
  if (!is_ready()) return;
  with_stack_space([=] { mcount_called(hook_site, stack_pointer, frame_pointer); });
}
