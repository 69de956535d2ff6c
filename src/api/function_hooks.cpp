// The hooks of -finstrument-functions. Each comes in two forms: functions of programs
// call the one that reads its caller's registers itself; the other gets them from the
// shim. The first form reads its values whenever they are needed, so that no register is
// kept for them.
#include "src/api/shim_interface.h"
#include "src/calls/call_records.hpp"
#include "src/calls/filtered_path.hpp"
#include "src/process/gate.hpp"
#include "src/writer/shared_records.hpp"

using namespace arctrace;
using namespace arctrace::writer;

namespace {

arctrace_shim_function_hook* slow_enter;
arctrace_shim_function_hook* slow_exit;

// The arguments that the shim passes to a hook.
struct HookCall {
  uintptr_t its_call_site;
  uintptr_t its_stack_pointer;
  uintptr_t its_frame_pointer;
  uintptr_t its_hook_site;

  uintptr_t call_site() const { return its_call_site; }
  uintptr_t call_site_for_slow_path() const { return its_call_site; }
  uintptr_t stack_pointer() const { return its_stack_pointer; }
  uintptr_t frame_pointer() const { return its_frame_pointer; }
  bool has_frame_pointer(uintptr_t value) const { return its_frame_pointer == value; }
  uintptr_t hook_site() const { return its_hook_site; }
  uint32_t hook_site_added_to(uint32_t sum) const {
    return sum + low_half(its_hook_site);
  }
  bool returns_to_caller() const { return its_hook_site == its_call_site; }
};

#if defined(__x86_64__)

// The same values for the function into which the members are inlined, read from its own
// registers. `Saved` says where the slow path finds the call site.
template <class Saved>
struct OwnHookCall {
  uintptr_t its_call_site;
  Saved& saved_call_site;

  __attribute__((always_inline)) uintptr_t call_site() const { return its_call_site; }
  __attribute__((always_inline)) uintptr_t call_site_for_slow_path() const {
    return saved_call_site;
  }
  __attribute__((always_inline)) uintptr_t stack_pointer() const {
    return address_anew(reinterpret_cast<const uintptr_t*>(frame_end()));
  }
#if defined(ARCTRACE_KEEPS_FRAME_POINTER)
  // No function of this file uses the frame pointer's register: the file is compiled so.
  __attribute__((always_inline)) uintptr_t frame_pointer() const {
    uintptr_t frame_pointer;
    asm("movq %%rbp, %0" : "=r"(frame_pointer));
    return frame_pointer;
  }
  __attribute__((always_inline)) bool has_frame_pointer(uintptr_t value) const {
    bool has;
    asm("cmpq %%rbp, %1" : "=@ccz"(has) : "r"(value));
    return has;
  }
  // The hook site is read anew at each call.
  __attribute__((always_inline)) uintptr_t hook_site() const { return hook_site_word(); }
  __attribute__((always_inline)) uint32_t hook_site_added_to(uint32_t sum) const {
    return sum_with(sum, hook_site_word());
  }
  __attribute__((always_inline)) bool returns_to_caller() const {
    return is_equal(hook_site_word(), its_call_site);
  }
  __attribute__((always_inline)) const volatile uintptr_t& hook_site_word() const {
    return *reinterpret_cast<const volatile uintptr_t*>(frame_end() - sizeof(uintptr_t));
  }
#else
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wframe-address"
  __attribute__((always_inline)) uintptr_t frame_pointer() const {
    return reinterpret_cast<uintptr_t>(__builtin_frame_address(1));
  }
  __attribute__((always_inline)) bool has_frame_pointer(uintptr_t value) const {
    return frame_pointer() == value;
  }
#pragma GCC diagnostic pop
  __attribute__((always_inline)) uintptr_t hook_site() const {
    return reinterpret_cast<uintptr_t>(__builtin_return_address(0));
  }
  __attribute__((always_inline)) uint32_t hook_site_added_to(uint32_t sum) const {
    return sum + low_half(hook_site());
  }
  __attribute__((always_inline)) bool returns_to_caller() const {
    return hook_site() == its_call_site;
  }
#endif
};

#endif

// Whether `frame` is the one that the call leaves.
template <class Call>
__attribute__((always_inline)) inline bool is_exited(const MachineFrame& frame,
                                                     const Call& call) {
  // A hook that returns to its function's caller was reached by a jump, the function's
  // last act, when the function's frame was gone.
  if (__builtin_expect(call.returns_to_caller(), 1)) {
    if (!is_equal(frame.cfa, call.stack_pointer())) return false;
  } else if (!is_equal(frame.stack_pointer, low_half(call.stack_pointer()))) {
    return false;
  }
  return true;
}

// REQUIRES: fast_path_is_open().
template <class Block, class Call, class Here>
__attribute__((always_inline)) inline bool exit_instrumented_fast(const Block& block,
                                                                  uint64_t key,
                                                                  const Call& call,
                                                                  Here here) {
  return exit_fast(block, key, here, [&](const MachineFrame& frame) ARCTRACE_INLINED {
    return is_exited(frame, call);
  });
}

// As enter_instrumented_fast(), by the filter. The frame of a call that is known has the
// flags that the filter of the command line has for its function.
template <class Stamp>
__attribute__((always_inline)) inline bool enter_filtered_by(uint64_t key,
                                                             const HookCall& call) {
  if (!filtered_path_is_open_by(0)) return false;
  const CallEdges::Edge* edge = nullptr;
  const MachineFrame* caller = nullptr;
  const FilteredEntry entry = enter_filtered_usual<Stamp>(
      key, call.stack_pointer(), HiddenFrames::kAlways,
      [&](const ThreadState& /*state*/, const OpenFrame* to) ARCTRACE_INLINED {
        caller = &(to - 1)->frame;
        edge = thread_local_state.edges.edge_of(*caller, call);
        return edge != nullptr;
      },
      [&]() ARCTRACE_INLINED { return edge->flags; },
      [&]() ARCTRACE_INLINED {
        MachineFrame frame;
        CallEdges::store_callee(*edge, *caller, call.stack_pointer(), frame);
        return frame;
      });
  return entry != FilteredEntry::kUndone;
}

// As exit_instrumented_fast(), by the filter.
template <class Stamp>
__attribute__((always_inline)) inline bool exit_filtered_by(uint64_t key,
                                                            const HookCall& call) {
  return filtered_path_is_open() &&
         exit_filtered_usual<Stamp>(
             call.stack_pointer(),
             [&](const ThreadState& /*state*/, const OpenFrame& innermost)
                 ARCTRACE_INLINED {
                   return innermost.key == key && is_exited(innermost.frame, call);
                 },
             []() ARCTRACE_INLINED {});
}

// The functions below are out of line, so that the hooks save no registers for them. So
// are those of sessions with a clock word, of which others save none either.

template <class Stamp>
__attribute__((always_inline)) inline void enter_slowly_by(uintptr_t function,
                                                           const HookCall& call) {
  if (enter_filtered_by<Stamp>(function, call)) return;
  slow_enter(function, call.call_site(), call.stack_pointer(), call.frame_pointer(),
             call.hook_site());
}

__attribute__((noinline)) void enter_slowly_by_word(uintptr_t function,
                                                    uintptr_t call_site,
                                                    uintptr_t stack_pointer,
                                                    uintptr_t frame_pointer,
                                                    uintptr_t hook_site) {
  enter_slowly_by<WordStamp>(function,
                             {call_site, stack_pointer, frame_pointer, hook_site});
}

__attribute__((noinline)) void enter_slowly(uintptr_t function, uintptr_t call_site,
                                            uintptr_t stack_pointer,
                                            uintptr_t frame_pointer,
                                            uintptr_t hook_site) {
  if (has_bare_heads()) {
    return enter_slowly_by_word(function, call_site, stack_pointer, frame_pointer,
                                hook_site);
  }
  enter_slowly_by<CounterStamp>(function,
                                {call_site, stack_pointer, frame_pointer, hook_site});
}

template <class Stamp>
__attribute__((always_inline)) inline void exit_slowly_by(uintptr_t function,
                                                          const HookCall& call) {
  if (exit_filtered_by<Stamp>(function, call)) return;
  slow_exit(function, call.call_site(), call.stack_pointer(), call.frame_pointer(),
            call.hook_site());
}

__attribute__((noinline)) void exit_slowly_by_word(uintptr_t function,
                                                   uintptr_t call_site,
                                                   uintptr_t stack_pointer,
                                                   uintptr_t frame_pointer,
                                                   uintptr_t hook_site) {
  exit_slowly_by<WordStamp>(function,
                            {call_site, stack_pointer, frame_pointer, hook_site});
}

__attribute__((noinline)) void exit_slowly(uintptr_t function, uintptr_t call_site,
                                           uintptr_t stack_pointer,
                                           uintptr_t frame_pointer, uintptr_t hook_site) {
  if (has_bare_heads()) {
    return exit_slowly_by_word(function, call_site, stack_pointer, frame_pointer,
                               hook_site);
  }
  exit_slowly_by<CounterStamp>(function,
                               {call_site, stack_pointer, frame_pointer, hook_site});
}

template <class Stamp>
__attribute__((noinline, flatten)) void enter_in_chain(
    uintptr_t function, uintptr_t call_site, uintptr_t stack_pointer,
    uintptr_t frame_pointer, uintptr_t hook_site, ThreadState& state) {
  const HookCall call{call_site, stack_pointer, frame_pointer, hook_site};
  const KnownSharedBlock<Stamp> block{state};
  if (enter_instrumented_fast(block, function, call, stack_pointer)) return;
  slow_enter(function, call_site, stack_pointer, frame_pointer, hook_site);
}

template <class Stamp>
__attribute__((noinline, flatten)) void exit_in_chain(
    uintptr_t function, uintptr_t call_site, uintptr_t stack_pointer,
    uintptr_t frame_pointer, uintptr_t hook_site, ThreadState& state) {
  const HookCall call{call_site, stack_pointer, frame_pointer, hook_site};
  const KnownSharedBlock<Stamp> block{state};
  if (exit_instrumented_fast(block, function, call, stack_pointer)) return;
  slow_exit(function, call_site, stack_pointer, frame_pointer, hook_site);
}

// False: nothing was done. REQUIRES: what the Stamp does.
template <class Stamp, class Call, class Here>
__attribute__((always_inline)) inline bool enter_by(uintptr_t function, const Call& call,
                                                    Here here) {
  const auto block = own_block<Stamp>([&](ThreadState& state) ARCTRACE_INLINED {
    enter_in_chain<Stamp>(function, call.call_site_for_slow_path(), call.stack_pointer(),
                          call.frame_pointer(), call.hook_site(), state);
    return true;
  });
  return enter_instrumented_fast(block, function, call, here);
}

// The same for its exit.
template <class Stamp, class Call, class Here>
__attribute__((always_inline)) inline bool exit_by(uintptr_t function, const Call& call,
                                                   Here here) {
  const auto block = own_block<Stamp>([&](ThreadState& state) ARCTRACE_INLINED {
    exit_in_chain<Stamp>(function, call.call_site_for_slow_path(), call.stack_pointer(),
                         call.frame_pointer(), call.hook_site(), state);
    return true;
  });
  return exit_instrumented_fast(block, function, call, here);
}

template <class Call, class Here>
__attribute__((always_inline)) inline void enter(uintptr_t function, const Call& call,
                                                 Here here) {
  if (__builtin_expect(
          is_open_for_all_functions() && enter_by<CounterStamp>(function, call, here),
          1)) {
    return;
  }
  if (word_path_is_open_for_all_functions() &&
      enter_by<WordStamp>(function, call, here)) {
    return;
  }
  enter_slowly(function, call.call_site_for_slow_path(), call.stack_pointer(),
               call.frame_pointer(), call.hook_site());
}

template <class Call, class Here>
__attribute__((always_inline)) inline void exit(uintptr_t function, const Call& call,
                                                Here here) {
  if (__builtin_expect(fast_path_is_open<ARCTRACE_GATE_FUNCTIONS>() &&
                           exit_by<CounterStamp>(function, call, here),
                       1)) {
    return;
  }
  if (word_path_is_open<ARCTRACE_GATE_FUNCTIONS>() &&
      exit_by<WordStamp>(function, call, here)) {
    return;
  }
  exit_slowly(function, call.call_site_for_slow_path(), call.stack_pointer(),
              call.frame_pointer(), call.hook_site());
}

}  // namespace

void arctrace_shim_set_slow_hooks(arctrace_shim_function_hook* enter,
                                  arctrace_shim_function_hook* exit) {
  slow_enter = enter;
  slow_exit = exit;
}

__attribute__((flatten)) void arctrace_shim_function_enter(uintptr_t function,
                                                           uintptr_t call_site,
                                                           uintptr_t stack_pointer,
                                                           uintptr_t frame_pointer,
                                                           uintptr_t hook_site) {
  enter(function, HookCall{call_site, stack_pointer, frame_pointer, hook_site},
        stack_pointer);
}

__attribute__((flatten)) void arctrace_shim_function_exit(uintptr_t function,
                                                          uintptr_t call_site,
                                                          uintptr_t stack_pointer,
                                                          uintptr_t frame_pointer,
                                                          uintptr_t hook_site) {
  exit(function, HookCall{call_site, stack_pointer, frame_pointer, hook_site},
       stack_pointer);
}

#if defined(__x86_64__)

__attribute__((flatten)) void arctrace_shim_enter_hook(uintptr_t function,
                                                       uintptr_t call_site) {
  // The call site is on the stack, so that no register is kept for it.
  const volatile uintptr_t saved_call_site = call_site;
  enter(function, OwnHookCall<const volatile uintptr_t>{call_site, saved_call_site},
        AtStackPointer{});
}

__attribute__((flatten)) void arctrace_shim_exit_hook(uintptr_t function,
                                                      uintptr_t call_site) {
  exit(function, OwnHookCall<const uintptr_t>{call_site, call_site}, AtStackPointer{});
}

#endif
