// Begins those calls of patched functions that the fast path does not begin.
#include "writer_shim/arch/patched_calls.h"

#include "src/api/shim_interface.h"
#include "src/base/large_table.hpp"
#include "src/base/shared_atomics.hpp"
#include "writer_shim/arch/loader_calls.hpp"
#include "writer_shim/base/stack_space.hpp"
#include "writer_shim/elf/loaded_objects.hpp"
#include "writer_shim/patch/patched_modules.hpp"
#include "writer_shim/plt/call_table.hpp"
#include "writer_shim/plt/library_hooks.hpp"

uint64_t arctrace_patched_code;
uint64_t arctrace_patched_code_size;

namespace arctrace::shim {
namespace {

// Return addresses outside of the program that have unwind tables, each at the index that
// its number gives; 0: none.
constexpr size_t kKnownCallers = 1024;
ARCTRACE_LARGE_TABLE constinit uint64_t known_callers[kKnownCallers]{};
uint32_t have_known_callers;  // not 0: some are not 0

constinit AddressRange own_code{};  // the shim's

// Code without unwind tables was made at run time; the runtime that made it may look up
// the return addresses of its frames, or move it.
bool has_unwind_tables(uintptr_t address) {
  if (address - arctrace_patched_code < arctrace_patched_code_size ||
      returns_to_stub(address)) {
    return true;
  }
  uint64_t& known = known_callers[address % kKnownCallers];
  if (IpcAtomics::load_relaxed(known) == address) return true;
  bool found = false;
  with_stack_space([&] {
    keep_vectors_around([&] {  // the loader's code uses them
      found = find_loaded_object(address).eh_frame_hdr != nullptr;
    });
  });
  if (found) {
    IpcAtomics::store_relaxed(have_known_callers, uint32_t{1});
    IpcAtomics::store_relaxed(known, uint64_t{address});
  }
  return found;
}

// Whether the shim, or the library through which it writes, is the caller.
bool is_own_call(uintptr_t return_address) {
  return (own_code.contains(return_address) || is_own_function(return_address)) &&
         !returns_to_stub(return_address);
}

}  // namespace

void know_own_code(AddressRange code) { own_code = code; }

void forget_patched_callers() {
  if (IpcAtomics::load_relaxed(have_known_callers) == 0) return;
  for (uint64_t& known : known_callers) IpcAtomics::store_relaxed(known, uint64_t{0});
}

}  // namespace arctrace::shim

using namespace arctrace;
using namespace arctrace::shim;

extern "C" arctrace_call_route arctrace_patched_call_begins(arctrace_stub_entry* entry,
                                                            uintptr_t* return_slot,
                                                            uintptr_t frame_pointer) {
  auto& call = *reinterpret_cast<LibraryCall*>(entry);
  // The shim itself calls libc, too.
  if (__builtin_expect(is_own_call(*return_slot), 0)) {
    return {static_cast<uintptr_t>(IpcAtomics::load_relaxed(call.plain.target)), 0};
  }
  if (__builtin_expect(has_unwind_tables(*return_slot), 1)) {
    const int begun = arctrace_shim_stub_begin(&call.plain, return_slot);
    if (begun != ARCTRACE_SHIM_NOT_BEGUN) {
      return {static_cast<uintptr_t>(IpcAtomics::load_relaxed(call.plain.target)),
              begun == ARCTRACE_SHIM_BEGUN ? 1U : 0U};
    }
    return arctrace_call_begins(entry, return_slot, frame_pointer);
  }
  arctrace_shim_entry_only_call(IpcAtomics::load_relaxed(call.plain.key), return_slot,
                                frame_pointer,
                                IpcAtomics::load_relaxed(call.plain.filter), 1);
  return {static_cast<uintptr_t>(IpcAtomics::load_relaxed(call.plain.target)), 0};
}
