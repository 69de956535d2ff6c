// Stubs are taken and freed under the loader's lock, one at a time; hooks only read the
// entries of stubs that are in use.
#include "writer_shim/plt/call_table.hpp"

#include <arctrace/format.h>

#include "src/base/shared_atomics.hpp"
#include "src/hook_abi/shim_types.h"
#include "writer_shim/arch/machine.hpp"
#include "writer_shim/plt/call_names.hpp"

namespace arctrace::shim {

constinit LibraryCall library_calls[ARCTRACE_STUB_COUNT]{};

namespace {

uint32_t stubs_used;   // the number after that of the last stub ever used
uint32_t likely_free;  // number

}  // namespace

uint32_t take_stub() {
  for (uint32_t i = 0; i < ARCTRACE_STUB_COUNT; ++i) {
    const uint32_t number = (likely_free + i) % ARCTRACE_STUB_COUNT;
    // An entry that was never used is not read: its page would be faulted in twice.
    if (number < stubs_used && library_calls[number].slot != nullptr) continue;
    likely_free = number + 1;
    if (number >= stubs_used) stubs_used = number + 1;
    return number;
  }
  return kNoStub;
}

void free_stubs(const AddressRange& module) {
  for (uint32_t i = 0; i < stubs_used; ++i) {
    if (module.contains(reinterpret_cast<uintptr_t>(library_calls[i].slot))) {
      library_calls[i].slot = nullptr;
    }
  }
}

uint32_t stub_for_function(const KnownFunction& function, uintptr_t target) {
  const uint32_t number = take_stub();
  if (number == kNoStub) return kNoStub;
  library_calls[number] = {
      .plain = {target, function.address, ARCTRACE_SHIM_NOT_READY, 0},
      .slot = reinterpret_cast<uint64_t*>(function.address),
      .name = function.name,
      .arg_specs = static_cast<uint16_t>(function.arg_specs),
      .kind = (function.flags_at_start & ARCTRACE_SHIM_ENTRY_ONLY) != 0
                  ? CallKind::kPassed
                  : CallKind::kUnexamined,
      .is_bound = 1,
      .filter = static_cast<uint16_t>(function.flags_at_start),
      .filter_at_start = static_cast<uint16_t>(function.flags_at_start)};
  return number;
}

void visit_calls(void (*visit)(LibraryCall& call)) {
  for (uint32_t i = 0; i < stubs_used; ++i) {
    if (library_calls[i].slot != nullptr) visit(library_calls[i]);
  }
}

bool returns_to_stub(uintptr_t address) {
  if constexpr (machine::kExchangesReturns) {
    if (address == reinterpret_cast<uintptr_t>(arctrace_exchanged_returns) ||
        address == reinterpret_cast<uintptr_t>(arctrace_kept_call_returns) ||
        address == reinterpret_cast<uintptr_t>(arctrace_slow_call_returns)) {
      return true;
    }
  }
  return address == reinterpret_cast<uintptr_t>(arctrace_call_returns);
}

uint64_t name_call(LibraryCall& call) {
  const uint32_t id = call_name_id(call.name);
  // Without memory for the name, the reader finds one by the address.
  const uint64_t key = id != 0 ? ARCTRACE_FRAME_NAME_BIT | ARCTRACE_FRAME_LIBRARY_BIT | id
                               : call.plain.target;
  IpcAtomics::store_relaxed(call.plain.key, key);
  return key;
}

void name_all_library_calls() {
  for (uint32_t i = 0; i < stubs_used; ++i) {
    if (library_calls[i].slot != nullptr && library_calls[i].plain.key == 0)
      name_call(library_calls[i]);
  }
}

}  // namespace arctrace::shim
