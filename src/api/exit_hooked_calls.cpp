// The hooks of exit-hooked functions, which call a hook at their entry and one right
// before each of their returns (gcc's -mfentry with -minstrument-return=call, XRay's
// sleds). Their return addresses stay where they are, so no call is pending; a frame is
// known by its CFA when it is left.
//
// Before a return, and at the entry of a function, nearly every register may hold a
// value. So these hooks save the registers that they use, and so do the slow paths that
// they call.
#include <arctrace/arctrace.h>

#include <cstdint>

#include "src/api/shim_interface.h"
#include "src/calls/call_records.hpp"
#include "src/calls/fast_path.hpp"
#include "src/calls/filtered_path.hpp"
#include "src/hook_abi/shim_types.h"
#include "src/process/gate.hpp"
#include "src/writer/record_filter.hpp"
#include "src/writer/shared_records.hpp"

using namespace arctrace;
using namespace arctrace::writer;

namespace {

constexpr uint32_t kExitHookedFrame =
    ARCTRACE_SHIM_BEGINS_FRAME | ARCTRACE_SHIM_LIBRARY_CALL | ARCTRACE_SHIM_EXIT_HOOKED;

// Records the entry of `key`, whose return address is in return_slot(). False: nothing
// was done. REQUIRES: fast_path_is_open(). Key: as for enter_fast().
template <class Block, class Key, class Here, class ReturnSlot>
__attribute__((always_inline)) inline bool enter_exit_hooked_fast(
    const Block& block, const Key& key, Here here, const ReturnSlot& return_slot) {
  const auto call = [&]() ARCTRACE_INLINED {
    return StubCall{return_slot(), 0, ARCTRACE_SHIM_EXIT_HOOKED};
  };
  return enter_fast(
      block, key, here,
      [&](const ThreadState& state, const OpenFrame* to) ARCTRACE_INLINED {
        // return_slot() is called anew for each access, so that no register is kept for
        // the address.
        const uintptr_t return_address = *return_slot();
        return state.open.depth.offset() == 0
                   ? is_known_first_stub_call(state, call(), return_address)
                   : is_known_inner_stub_call(to, call(), return_address);
      },
      [&](OpenFrame& to, uint64_t its_key) ARCTRACE_INLINED {
        const StubCall entered = call();
        to.store(its_key, entered.frame(*entered.return_slot));
      });
}

// Records that the function whose return address is in `return_slot` is about to return
// there, if its frame is the innermost one. False: nothing was done. REQUIRES:
// fast_path_is_open().
template <class Block>
__attribute__((always_inline)) inline bool leave_exit_hooked_fast(
    const Block& block, const uintptr_t* return_slot) {
  const auto here = reinterpret_cast<uintptr_t>(return_slot);
  FrameCount exited;  // index of the frame
  return block.record(
      AtStackPointer{}, ARCTRACE_TYPE_EXIT, 0,
      [&](const ThreadState& state) ARCTRACE_INLINED {
        exited = state.open.depth.previous();
        if (exited.offset() >= FrameCount(OpenFrames::kMax).offset()) return false;
        const MachineFrame& innermost = state.open.frame_at(exited)->frame;
        return innermost.cfa == here + sizeof(uintptr_t) &&
               innermost.flags == kExitHookedFrame;
      },
      [&](Nesting nesting, ThreadState& state, const Reservation& record)
          ARCTRACE_INLINED { commit_leave(nesting, state, record, exited); });
}

// As enter_exit_hooked_fast(), by the filter.
template <class Stamp>
__attribute__((always_inline)) inline bool enter_filtered_by(uint64_t key,
                                                             const StubCall& call) {
  if (!filtered_path_is_open_by(IpcAtomics::load_relaxed(call_filter.number))) {
    return false;
  }
  const uintptr_t return_address = *call.return_slot;
  const FilteredEntry entry = enter_filtered_usual<Stamp>(
      key, call.here(), HiddenFrames::kAlways,
      [&](const ThreadState& state, const OpenFrame* to) ARCTRACE_INLINED {
        return is_known_stub_call(state, to, call, return_address) ||
               is_known_stub_call_in_found(state, to, call, return_address);
      },
      [&]() ARCTRACE_INLINED { return call.flags; },
      [&]() ARCTRACE_INLINED { return call.frame(return_address); });
  return entry != FilteredEntry::kUndone;
}

__attribute__((noinline)) bool enter_filtered_by_word(uint64_t key,
                                                      const StubCall& call) {
  return enter_filtered_by<WordStamp>(key, call);
}

bool enter_exit_hooked_filtered(uint64_t key, const StubCall& call) {
  if (has_bare_heads()) return enter_filtered_by_word(key, call);
  return enter_filtered_by<CounterStamp>(key, call);
}

// As leave_exit_hooked_fast(), by the filter.
template <class Stamp>
__attribute__((always_inline)) inline bool leave_filtered_by(uintptr_t return_slot) {
  return filtered_path_is_open() &&
         exit_filtered_usual<Stamp>(
             return_slot,
             [&](const ThreadState& /*state*/, const OpenFrame& innermost)
                 ARCTRACE_INLINED {
                   return innermost.frame.cfa == return_slot + sizeof(uintptr_t) &&
                          innermost.frame.has(ARCTRACE_SHIM_EXIT_HOOKED);
                 },
             []() ARCTRACE_INLINED {});
}

__attribute__((noinline)) bool leave_filtered_by_word(uintptr_t return_slot) {
  return leave_filtered_by<WordStamp>(return_slot);
}

bool leave_exit_hooked_filtered(uintptr_t return_slot) {
  if (has_bare_heads()) return leave_filtered_by_word(return_slot);
  return leave_filtered_by<CounterStamp>(return_slot);
}

arctrace_shim_entry_hook* slow_entry = [](uintptr_t*) {};
arctrace_shim_return_hook* slow_return = [](uintptr_t*, uintptr_t) {};

// Functions with these hooks call them with any alignment of the stack.
ARCTRACE_KEEPS_REGISTERS __attribute__((noinline, force_align_arg_pointer)) void
enter_slowly(uintptr_t* return_slot) {
  slow_entry(return_slot);
}

ARCTRACE_KEEPS_REGISTERS __attribute__((noinline, force_align_arg_pointer)) void
exit_slowly(uintptr_t* return_slot, uintptr_t hook_site) {
  slow_return(return_slot, hook_site);
}

template <class Stamp>
ARCTRACE_KEEPS_REGISTERS __attribute__((noinline, flatten)) bool enter_in_chain(
    uint64_t key, const uintptr_t* return_slot, ThreadState& state) {
  return enter_exit_hooked_fast(KnownSharedBlock<Stamp>{state}, key,
                                reinterpret_cast<uintptr_t>(return_slot),
                                [=]() ARCTRACE_INLINED { return return_slot; });
}

template <class Stamp>
ARCTRACE_KEEPS_REGISTERS __attribute__((noinline, flatten)) bool exit_in_chain(
    const uintptr_t* return_slot, ThreadState& state) {
  return leave_exit_hooked_fast(KnownSharedBlock<Stamp>{state}, return_slot);
}

// The return slot of the function into which this is inlined. It is found anew at each
// use, so that no register is kept for it.
__attribute__((always_inline)) inline uintptr_t* entered_return_slot() {
  const auto* end = reinterpret_cast<const uintptr_t*>(frame_end());
  return reinterpret_cast<uintptr_t*>(address_anew(end - ARCTRACE_SHIM_ENTERED_CALL));
}

// For the function into which this is inlined. False: nothing was done. REQUIRES: what
// the Stamp does.
template <class Stamp>
__attribute__((always_inline)) inline bool enter_by() {
  // The key is the word that the stub stored last.
  const EnteredKey key{reinterpret_cast<const uintptr_t*>(frame_end())};
  const auto block = own_block<Stamp>([&](ThreadState& state) ARCTRACE_INLINED {
    return enter_in_chain<Stamp>(key, entered_return_slot(), state);
  });
  const auto return_slot = []() ARCTRACE_INLINED {
    return static_cast<const uintptr_t*>(entered_return_slot());
  };
  return enter_exit_hooked_fast(block, key, AtStackPointer{}, return_slot);
}

// The same for its exit.
template <class Stamp>
__attribute__((always_inline)) inline bool exit_by(uintptr_t* return_slot) {
  const auto block = own_block<Stamp>([&](ThreadState& state) ARCTRACE_INLINED {
    return exit_in_chain<Stamp>(return_slot, state);
  });
  return leave_exit_hooked_fast(block, return_slot);
}

}  // namespace

void arctrace_shim_set_slow_returns(arctrace_shim_entry_hook* entry,
                                    arctrace_shim_return_hook* returns) {
  slow_entry = entry;
  slow_return = returns;
}

ARCTRACE_KEEPS_REGISTERS ARCTRACE_SHIM_NO_LANDING_PAD __attribute__((flatten)) void
arctrace_shim_function_entry(void) {
  if (__builtin_expect(is_open_for_all_functions() && enter_by<CounterStamp>(), 1)) {
    return;
  }
  if (word_path_is_open_for_all_functions() && enter_by<WordStamp>()) return;
  enter_slowly(entered_return_slot());
}

ARCTRACE_KEEPS_REGISTERS __attribute__((flatten)) void arctrace_shim_function_return(
    void) {
  auto* return_slot = static_cast<uintptr_t*>(__builtin_dwarf_cfa());
  if (__builtin_expect(fast_path_is_open<ARCTRACE_GATE_FUNCTIONS>() &&
                           exit_by<CounterStamp>(return_slot),
                       1)) {
    return;
  }
  if (word_path_is_open<ARCTRACE_GATE_FUNCTIONS>() && exit_by<WordStamp>(return_slot)) {
    return;
  }
  // Programs call this without a session, too.
  if (!gate_is_open(ARCTRACE_GATE_FUNCTIONS)) return;
  exit_slowly(return_slot, reinterpret_cast<uintptr_t>(__builtin_return_address(0)));
}

void __return__(void) __attribute__((alias("arctrace_shim_function_return")));

int arctrace_shim_enter_exit_hooked(uint64_t frame_key, const uintptr_t* return_slot,
                                    uintptr_t frame_pointer, uint32_t flags) {
  const ThreadState* state = thread_local_state.state;
  if (state != nullptr && state->open.depth >= OpenFrames::kMax) {
    // The CFA of this frame would not be known at its exit.
    return call_began_slow(frame_key, return_slot, frame_pointer, flags);
  }
  if (!is_recorded(ARCTRACE_GATE_FUNCTIONS)) return 0;
  const StubCall call{return_slot, frame_pointer, flags | ARCTRACE_SHIM_EXIT_HOOKED};
  if (!enter_exit_hooked_filtered(frame_key, call)) enter_stub_slow(frame_key, call);
  return 0;
}

int arctrace_shim_leave_exit_hooked(const uintptr_t* return_slot) {
  const auto slot = reinterpret_cast<uintptr_t>(return_slot);
  if (!is_recorded(ARCTRACE_GATE_FUNCTIONS) || leave_exit_hooked_filtered(slot)) return 1;
  return leave_exit_hooked_slow(slot) ? 1 : 0;
}
