// The table of calls, which has the function that each stub (call_stubs.h) calls, by the
// stub's number; and the names of these calls, which each process defines in the trace
// once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/hook_abi/shim_types.h"
#include "src/shim_protocol/call_kinds.hpp"
#include "writer_shim/arch/call_stubs.h"
#include "writer_shim/arch/loader_calls.hpp"
#include "writer_shim/elf/module_slots.hpp"
#include "writer_shim/filter/function_filter.hpp"

namespace arctrace::shim {

// The id of a library call's name, which is defined in the trace if it is new. 0: there
// is no memory. If two threads ask at once for a new name, it may get two ids.
uint32_t call_name_id(const char* name);

// One call of one module; a cache line. All zero is a free one.
struct alignas(64) LibraryCall {
  // The target is the slot's former value, until the call is bound; the key is 0 until
  // the first call. The call is ready when it is wrapped, bound, named, and without
  // arguments, or with locks only.
  arctrace_shim_stub_call plain = {};
  uint64_t* slot = nullptr;    // null: the stub is free
  const char* name = nullptr;  // in the module that calls
  LazyBinding binding = {};
  uint16_t arg_specs = 0;  // see arg_specs_of()
  CallKind kind = CallKind::kUnexamined;
  uint8_t is_bound = 0;
  uint32_t generation = 0;  // of the live filter that plain.filter is by

  // Whether only the call's entry and exit are to be recorded, as soon as it is ready.
  bool is_plain() const { return kind == CallKind::kWrapped && arg_specs == 0; }
};

static_assert(sizeof(LibraryCall) == 1 << ARCTRACE_STUB_ENTRY_SHIFT);
static_assert(offsetof(LibraryCall, plain.target) == 0);
static_assert(offsetof(LibraryCall, plain.ready_at) == ARCTRACE_STUB_READY_AT);
static_assert(ARCTRACE_STUB_NOT_READY == ARCTRACE_SHIM_NOT_READY);

// The stubs know its address by this name.
extern LibraryCall library_calls[ARCTRACE_STUB_COUNT] __asm__("arctrace_library_calls")
    __attribute__((visibility("hidden")));

constexpr uint32_t kNoStub = UINT32_MAX;

// REQUIRES: is_stub(address).
inline LibraryCall& call_of_stub(uintptr_t address) {
  return library_calls[(address - stub_address(0)) >> ARCTRACE_STUB_SHIFT];
}

// The number of a free stub, or kNoStub. The stub is free until its call has a slot.
uint32_t take_stub();

// Frees the stubs of calls whose slots are in `module`.
void free_stubs(const AddressRange& module);

// The number of a stub that calls `function` by way of `target`, which comes after the
// jump that leads to the stub. kNoStub: none is free.
uint32_t stub_for_function(const KnownFunction& function, uintptr_t target);

// Calls visit(call) for each call that has a stub.
void visit_calls(void (*visit)(LibraryCall& call));

// Whether a function that returns to `address` was called through a stub.
bool returns_to_stub(uintptr_t address);

// Gives the call the key of its frames, and returns it.
uint64_t name_call(LibraryCall& call);

// Gives all calls their keys: no system call and no memory may be needed from now on.
void name_all_library_calls();

// The flags (enum arctrace_shim_call_flags) of a call that returns to `return_address`,
// by the live filter too.
uint32_t filtered_flags(LibraryCall& call, uintptr_t return_address);

// Tells the writer what a call of `name` is about to do, which is of kind kStacks,
// kLastSwitch or kFramesOnlyStacks: by these calls programs make coroutine stacks and
// switch to other stacks (makecontext, swapcontext and setcontext, and the fcontext
// functions of Boost.Context).
void record_stack_call(const char* name, const uintptr_t* return_slot);

}  // namespace arctrace::shim
