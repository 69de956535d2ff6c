// Begins those calls of patched functions that the fast path does not begin.
#include "src/api/shim_interface.h"
#include "src/base/shared_atomics.hpp"
#include "writer_shim/arch/patched_calls.h"
#include "writer_shim/elf/loaded_objects.hpp"
#include "writer_shim/plt/call_table.hpp"

uint64_t arctrace_patched_code;
uint64_t arctrace_patched_code_size;

using namespace arctrace;
using namespace arctrace::shim;

namespace {

// Code without unwind tables was made at run time, and whoever made it may look up the
// return addresses of its frames, or move it.
bool has_unwind_tables(uintptr_t address) {
  return address - arctrace_patched_code < arctrace_patched_code_size ||
         find_loaded_object(address).eh_frame_hdr != nullptr;
}

}  // namespace

extern "C" arctrace_call_route arctrace_patched_call_begins(arctrace_stub_entry* entry,
                                                            uintptr_t* return_slot,
                                                            uintptr_t frame_pointer) {
  if (__builtin_expect(has_unwind_tables(*return_slot), 1)) {
    return arctrace_call_begins(entry, return_slot, frame_pointer);
  }
  auto& call = *reinterpret_cast<LibraryCall*>(entry);
  arctrace_shim_call_passed(IpcAtomics::load_relaxed(call.plain.key), return_slot,
                            frame_pointer, IpcAtomics::load_relaxed(call.filter), 1);
  return {static_cast<uintptr_t>(IpcAtomics::load_relaxed(call.plain.target)), 0};
}
