// The table of what each stub (call_stubs.h) calls, by its number.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/hook_abi/shim_types.h"
#include "src/shim_protocol/call_kinds.hpp"
#include "writer_shim/arch/call_stubs.h"
#include "writer_shim/arch/lazy_binding.hpp"
#include "writer_shim/elf/module_slots.hpp"
#include "writer_shim/filter/function_filter.hpp"

namespace arctrace::shim {

// One call of one module; a cache line. All zero is a free one.
struct alignas(64) LibraryCall {
  // Its target is what the slot held, until the call is bound; its key is 0 until the
  // first call. It is ready when it is followed, bound, named, and without arguments, or
  // with locks only.
  arctrace_shim_stub_call plain = {};
  uint64_t* slot = nullptr;    // null: the stub is free
  const char* name = nullptr;  // in the module that calls
  LazyBinding binding = {};
  uint16_t arg_specs = 0;  // see arg_specs_of()
  CallKind kind = CallKind::kUnexamined;
  uint8_t is_bound = 0;
  // Flags of arctrace_shim_call: by the live filter of plain.round, and before there was
  // one.
  uint16_t filter = 0;
  uint16_t filter_at_start = 0;

  // Whether only its entry and its exit are to be recorded, as soon as it is ready.
  bool is_plain() const { return kind == CallKind::kFollowed && arg_specs == 0; }
};

static_assert(sizeof(LibraryCall) == 1 << ARCTRACE_STUB_ENTRY_SHIFT);
static_assert(offsetof(LibraryCall, plain.target) == 0);
static_assert(offsetof(LibraryCall, plain.ready_at) == ARCTRACE_STUB_READY_AT);
static_assert(ARCTRACE_STUB_NOT_READY == ARCTRACE_SHIM_NOT_READY);

// The stubs know its address by this name.
extern LibraryCall library_calls[ARCTRACE_STUB_COUNT] __asm__("arctrace_library_calls")
    __attribute__((visibility("hidden")));

constexpr uint32_t kNoStub = UINT32_MAX;

inline uintptr_t stub_address(uint32_t number) {
  return reinterpret_cast<uintptr_t>(arctrace_call_stubs) +
         (uintptr_t{number} << ARCTRACE_STUB_SHIFT);
}

inline bool is_stub(uintptr_t address) {
  return address >= stub_address(0) && address < stub_address(ARCTRACE_STUB_COUNT);
}

// REQUIRES: is_stub(address).
inline LibraryCall& call_of_stub(uintptr_t address) {
  return library_calls[(address - stub_address(0)) >> ARCTRACE_STUB_SHIFT];
}

// The number of a free stub, or kNoStub. It is free until its call has a slot.
uint32_t take_stub();

// Frees the stubs of calls whose slots are in `module`.
void free_stubs(const AddressRange& module);

// The number of a stub that calls `function` by way of `target`, which comes after the
// jump that leads to the stub. kNoStub: there is none left.
uint32_t stub_for_function(const KnownFunction& function, uintptr_t target);

// Calls visit(call) for each call that has a stub.
void visit_calls(void (*visit)(LibraryCall& call));

// Whether a function that returns to `address` was called through a stub.
bool returns_to_stub(uintptr_t address);

// Gives the call the key of its frames, and returns it.
uint64_t name_call(LibraryCall& call);

// Gives all calls their keys: no system call and no memory may be needed from now on.
void name_all_library_calls();

}  // namespace arctrace::shim
