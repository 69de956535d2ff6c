// Decides what a stub does with a call (call_stubs.h) of a library function, or of a
// function with a sled, unless the writer's fast path has begun it.
#include <ucontext.h>

#include "src/api/shim_interface.h"
#include "src/base/shared_atomics.hpp"
#include "src/base/text.hpp"
#include "writer_shim/arch/machine.hpp"
#include "writer_shim/base/stack_space.hpp"
#include "writer_shim/filter/function_patterns.hpp"
#include "writer_shim/filter/live_filter.hpp"
#include "writer_shim/plt/call_table.hpp"
#include "writer_shim/plt/caller_readers.hpp"
#include "writer_shim/plt/library_hooks.hpp"
#include "writer_shim/unwind/frame_finder.hpp"

namespace arctrace::shim {

namespace {

const ucontext_t& context_at(const uintptr_t* return_slot, size_t argument) {
  return *reinterpret_cast<const ucontext_t*>(
      machine::argument_of(return_slot, argument));
}

}  // namespace

void record_stack_call(const char* name, const uintptr_t* return_slot) {
  if (equal(name, "makecontext")) {
    const stack_t& stack = context_at(return_slot, 0).uc_stack;
    const auto low = reinterpret_cast<uintptr_t>(stack.ss_sp);
    return arctrace_shim_makes_stack(low, low + stack.ss_size);
  }
  if (equal(name, "make_fcontext")) {
    const uintptr_t high = machine::argument_of(return_slot, 0);
    const uintptr_t size = machine::argument_of(return_slot, 1);
    return arctrace_shim_makes_stack(size < high ? high - size : 0, high);
  }
  uintptr_t target = 0;
  if (equal(name, "swapcontext")) {
    target = machine::context_stack_pointer(context_at(return_slot, 1));
  } else if (equal(name, "setcontext")) {
    target = machine::context_stack_pointer(context_at(return_slot, 0));
  } else {
    // An fcontext_t is the end of the stack that it stands for.
    target = machine::argument_of(return_slot, 0);
  }
  if (target != 0) arctrace_shim_switches_stack(target, 0);
}

namespace {

// Has the loader find the function, and hooks the slot again if the loader had to write
// to it: calls of another thread through it in between are not recorded then. Returns the
// function's address.
__attribute__((noinline)) uintptr_t bind(LibraryCall& call) {
  const uintptr_t target = bind_lazily(call.binding);
  if (is_own_function(target)) {
    call.kind = CallKind::kSkipped;
    IpcAtomics::store_release(*call.slot, uint64_t{target});
  } else {
    IpcAtomics::store_release(
        *call.slot, uint64_t{stub_address(static_cast<uint32_t>(&call - library_calls))});
  }
  IpcAtomics::store_relaxed(call.plain.target, uint64_t{target});
  // This is stored last, so that a thread that sees it finds the target.
  IpcAtomics::store_release(call.is_bound, uint8_t{1});
  return target;
}

// Applies the live filter again, which has changed.
__attribute__((noinline)) void filter_again(LibraryCall& call) {
  uint32_t flags = 0;
  uint32_t generation = 0;
  if (!apply_live_filter(call.name, call.plain.filter_at_start, flags, generation))
    return;
  IpcAtomics::store_relaxed(call.plain.filter, static_cast<uint16_t>(flags));
  IpcAtomics::store_relaxed(call.generation, generation);
}

// Begins a call that is not wrapped, or whose arguments or return value are recorded.
// Nonzero: it is to be called through.
__attribute__((noinline)) uintptr_t begin_special_call(const LibraryCall& call,
                                                       uint64_t key,
                                                       uintptr_t* return_slot,
                                                       uintptr_t frame_pointer,
                                                       uint32_t flags) {
  uintptr_t arguments[ARCTRACE_SHIM_ARGUMENTS_MAX];
  for (size_t i = 0; i < ARCTRACE_SHIM_ARGUMENTS_MAX; ++i) {
    arguments[i] = machine::argument_of(return_slot, i);
  }
  const bool is_wrapped = call.kind == CallKind::kWrapped;
  const int returns = is_entry_only(call.kind) ? 1 : 0;
  if (call.arg_specs == 0) {
    arctrace_shim_entry_only_call(key, return_slot, frame_pointer, flags, returns);
  } else if (!is_wrapped) {
    arctrace_shim_entry_only_call_with_args(key, return_slot, frame_pointer, flags,
                                            returns, call.arg_specs, arguments);
  } else {
    return static_cast<uintptr_t>(arctrace_shim_call_begin_with_args(
        key, return_slot, frame_pointer, flags, call.arg_specs, arguments));
  }
  return 0;
}

uint32_t flags_of(LibraryCall& call, uintptr_t return_address) {
  const uint32_t flags = IpcAtomics::load_relaxed(call.plain.filter);
  return returns_to_stub(return_address) ? flags | ARCTRACE_SHIM_RETURNS_TO_SHIM : flags;
}

bool records_frames_only(CallKind kind) {
  return kind == CallKind::kFramesOnlyJump || kind == CallKind::kFramesOnlyCatch ||
         kind == CallKind::kFramesOnlyStacks || kind == CallKind::kFramesOnlyFrameAddress;
}

// Records abandoned frames: a jump abandons those below its target; when an exception is
// caught, those below its catcher are abandoned.
void record_abandoned_frames(CallKind kind, const uintptr_t* return_slot) {
  const auto here = reinterpret_cast<uintptr_t>(return_slot + 1);
  if (kind == CallKind::kFramesOnlyCatch) return arctrace_shim_abandons_below(here);
  const auto* buffer =
      reinterpret_cast<const uintptr_t*>(machine::argument_of(return_slot, 0));
  const uintptr_t target = machine::jump_stack_pointer(buffer);
  if (target != 0) arctrace_shim_switches_stack(target, 1);
  if (target >= here && target % sizeof(uintptr_t) == 0) {
    arctrace_shim_abandons_below(target);
  }
}

// Records what a call that is jumped to does to the thread's frames.
void record_jump(const LibraryCall& call, const uintptr_t* return_slot) {
  switch (call.kind) {
    case CallKind::kLongJump:
    case CallKind::kFramesOnlyJump:
    case CallKind::kFramesOnlyCatch:
      return record_abandoned_frames(call.kind, return_slot);
    case CallKind::kStacks:
    case CallKind::kLastSwitch:
    case CallKind::kFramesOnlyStacks:
      return record_stack_call(call.name, return_slot);
    default:
      return;
  }
}

// The target of a call that is jumped to, of a function that is at `target`.
uintptr_t jump_target(CallKind kind, uintptr_t target) {
  const bool is_frame_address =
      kind == CallKind::kFrameAddress || kind == CallKind::kFramesOnlyFrameAddress;
  return is_frame_address ? own_frame_address(target) : target;
}

// The kind of a function by its code. If the function has a hook of its own, that records
// it.
CallKind examined_kind(const LibraryCall& call, uintptr_t target) {
  const bool is_library_call = call.plain.key == 0;
  if (is_library_call && has_own_hook(target)) return CallKind::kSkipped;
  const bool uses_caller = may_copy_stack_inside(call.name, target) ||
                           uses_its_caller(target) ||
                           (is_library_call && is_of_sanitizer(target));
  return uses_caller ? CallKind::kEntryOnly : CallKind::kWrapped;
}

// Begins the first call, each call that is not plain, and the first one after a change of
// the live filter.
__attribute__((noinline)) arctrace_call_route begin_unready_call(
    LibraryCall& call, uintptr_t* return_slot, uintptr_t frame_pointer) {
  uintptr_t target = IpcAtomics::load_relaxed(call.plain.target);
  if (call.kind == CallKind::kInitializer) {
    module_is_initialized();  // the loader's lock is held: loaded modules are relocated
    call.slot = nullptr;
    return {target, 0};
  }
  target = IpcAtomics::load_acquire(call.is_bound) == 0
               ? bind(call)
               : IpcAtomics::load_relaxed(call.plain.target);
  if (call.kind == CallKind::kUnexamined) {
    // The functions to which this one jumps are looked up under the loader's lock.
    if (arctrace_shim_is_borrower() != 0) return {target, 0};
    call.kind = examined_kind(call, target);
  }
  if (call.kind == CallKind::kSkipped) return {target, 0};
  if (records_frames_only(call.kind)) {
    record_jump(call, return_slot);
    return {jump_target(call.kind, target), 0};
  }
  uint64_t key = IpcAtomics::load_relaxed(call.plain.key);
  if (key == 0) key = name_call(call);
  const uint32_t flags = filtered_flags(call, *return_slot);
  if (!call.is_plain()) {
    const uint32_t locks =
        call.kind == CallKind::kWrapped ? count_only_locks(call.arg_specs) : 0;
    if (locks != 0) {
      IpcAtomics::store_release(call.plain.ready_at,
                                ARCTRACE_SHIM_READY_WITH_LOCKS(
                                    IpcAtomics::load_relaxed(call.generation), locks));
    }
    const uintptr_t through =
        begin_special_call(call, key, return_slot, frame_pointer, flags);
    record_jump(call, return_slot);
    return {jump_target(call.kind, target), through};
  }
  // A thread that sees it finds the target and the key.
  IpcAtomics::store_release(call.plain.ready_at,
                            IpcAtomics::load_relaxed(call.generation));
  return {target, static_cast<uintptr_t>(
                      arctrace_shim_call_begin(key, return_slot, frame_pointer, flags))};
}

}  // namespace

uint32_t filtered_flags(LibraryCall& call, uintptr_t return_address) {
  if (live_filter_generation() != IpcAtomics::load_relaxed(call.generation)) {
    filter_again(call);
  }
  return flags_of(call, return_address);
}

}  // namespace arctrace::shim

using namespace arctrace;
using namespace arctrace::shim;

extern "C" arctrace_call_route arctrace_call_begins(arctrace_stub_entry* entry,
                                                    uintptr_t* return_slot,
                                                    uintptr_t frame_pointer) {
  auto& call = *reinterpret_cast<LibraryCall*>(entry);
  if (__builtin_expect(
          IpcAtomics::load_acquire(call.plain.ready_at) != live_filter_generation(), 0)) {
    if constexpr (!machine::kStubsTryFastPath) {
      const int begun = arctrace_shim_stub_begin(&call.plain, return_slot);
      if (begun != ARCTRACE_SHIM_NOT_BEGUN) {
        return {IpcAtomics::load_relaxed(call.plain.target),
                begun == ARCTRACE_SHIM_BEGUN ? 1U : 0U};
      }
    }
    arctrace_call_route route{};
    with_stack_space(
        [&] { route = begin_unready_call(call, return_slot, frame_pointer); });
    return route;
  }
  const uintptr_t target = IpcAtomics::load_relaxed(call.plain.target);
  return {target, static_cast<uintptr_t>(arctrace_shim_call_begin(
                      IpcAtomics::load_relaxed(call.plain.key), return_slot,
                      frame_pointer, flags_of(call, *return_slot)))};
}
