// What the stubs stand for (call_stubs.h), by their numbers.
#pragma once

#include <cstdint>

#include "src/shim_protocol/call_kinds.hpp"
#include "writer_shim/arch/call_stubs.h"
#include "writer_shim/arch/lazy_binding.hpp"
#include "writer_shim/elf/module_slots.hpp"
#include "writer_shim/filter/function_filter.hpp"

namespace arctrace::shim {

// A cache line.
struct alignas(64) LibraryCall {
  uint64_t target = 0;         // of a call that is not bound yet: what the slot held
  uint64_t key = 0;            // of its frames; 0: it was not called yet
  uint64_t* slot = nullptr;    // null: the stub is free
  const char* name = nullptr;  // in the module that calls
  LazyBinding binding = {};
  uint32_t is_bound = 0;
  CallKind kind = CallKind::kFollowed;
  // Followed, bound, named, and without values: the hot path's one question.
  uint8_t is_ready = 0;
  uint16_t values = 0;  // their number (call_values.hpp); 0: none
  // Flags of arctrace_shim_call, by the choice number `round`; and before any.
  uint16_t filter = 0;
  uint16_t filter_at_start = 0;
  uint32_t round = 0;

  // Whether it needs nothing but to be recorded, once it is ready.
  bool is_plain() const { return kind == CallKind::kFollowed && values == 0; }
};

static_assert(sizeof(LibraryCall) == 64);

extern LibraryCall library_calls[ARCTRACE_STUB_COUNT];

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

// A free one, or kNoStub. It is free until its call has a slot.
uint32_t take_stub();

// Frees those of calls whose slots are in `module`.
void free_stubs(const AddressRange& module);

// The address of a stub that calls `target` as the function `function`, where `target` is
// behind the jump that leads to the stub. 0: there is none left.
uintptr_t stub_for_function(const KnownFunction& function, uintptr_t target);

// Whether a function that returns to `address` was called through a stub.
bool returns_to_stub(uintptr_t address);

// The key of the call's frames, from now on.
uint64_t name_call(LibraryCall& call);

// No system call and no memory may be needed from now on.
void name_all_library_calls();

}  // namespace arctrace::shim
