// The stubs and their calls. Stubs are taken and freed under the loader's lock, one at a
// time; hooks only read the entries of stubs that are in use.
#include "writer_shim/plt/call_table.hpp"

#include <arctrace/format.h>

#include "src/api/shim_interface.h"
#include "src/base/large_table.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/hook_abi/shim_types.h"
#include "writer_shim/arch/call_stubs.h"
#include "writer_shim/arch/machine.hpp"

namespace arctrace::shim {

// The table of names is a hash table without locks that compares hashes only: names that
// share one of 62 bits would share an id.

namespace {

// A name that has an id. Names stay when a module is unloaded, so that one that is loaded
// again and again defines no new names.
struct KnownName {
  uint64_t hash;  // 0: free
  uint32_t id;
};

// The first names are close together, because a short program calls few functions and
// should touch few pages for them.
constexpr uint32_t kFirstNamesMax = 1024;
constexpr uint32_t kOtherNamesMax = 2 * ARCTRACE_STUB_COUNT;
constexpr uint32_t kNameProbes = 16;  // among the first names, then among the others
ARCTRACE_LARGE_TABLE constinit KnownName names[kFirstNamesMax + kOtherNamesMax]{};

// The entry of the i-th probe for the name of `hash`.
KnownName& probe(uint64_t hash, uint32_t i) {
  const uint64_t start = hash / 4 + i % kNameProbes;
  return names[i < kNameProbes ? start % kFirstNamesMax
                               : kFirstNamesMax + start % kOtherNamesMax];
}

// The hash is FNV-1a.
uint64_t hash_of(const char* name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (; *name != '\0'; ++name) {
    hash = (hash ^ static_cast<unsigned char>(*name)) * 0x100000001b3;
  }
  return hash | 2;  // 1: being filled in
}

}  // namespace

uint32_t call_name_id(const char* name) {
  const uint64_t hash = hash_of(name);
  KnownName* free = nullptr;
  for (uint32_t i = 0; i < 2 * kNameProbes; ++i) {
    KnownName& known = probe(hash, i);
    const uint64_t found = IpcAtomics::load_acquire(known.hash);
    if (found == hash) return IpcAtomics::load_relaxed(known.id);
    if (found != 0) continue;
    free = &known;
    break;
  }
  const uint32_t id = arctrace_shim_define_name(name);
  uint64_t expected = 0;
  if (id != 0 && free != nullptr &&
      IpcAtomics::compare_exchange_acq_rel(free->hash, expected, uint64_t{1})) {
    IpcAtomics::store_relaxed(free->id, id);
    IpcAtomics::store_release(free->hash, hash);
  }
  return id;
}

// A small program has all of its calls on one page.
alignas(4096) ARCTRACE_LARGE_TABLE
    constinit LibraryCall library_calls[ARCTRACE_STUB_COUNT]{};

namespace {

uint32_t stubs_used;   // the number after that of the last stub ever used
uint32_t likely_free;  // number

}  // namespace

uint32_t take_stub() {
  for (uint32_t i = 0; i < ARCTRACE_STUB_COUNT; ++i) {
    const uint32_t number = (likely_free + i) % ARCTRACE_STUB_COUNT;
    // An entry that was never used is not read, because that would fault its page in
    // twice.
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
  const auto filter = static_cast<uint16_t>(function.flags_at_start);
  library_calls[number] = {
      .plain = {target, function.address, ARCTRACE_SHIM_NOT_READY, filter, filter},
      .slot = reinterpret_cast<uint64_t*>(function.address),
      .name = function.name,
      .arg_specs = static_cast<uint16_t>(function.arg_specs),
      .kind = (filter & ARCTRACE_SHIM_ENTRY_ONLY) != 0 ? CallKind::kEntryOnly
                                                       : CallKind::kUnexamined,
      .is_bound = 1};
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
        address == reinterpret_cast<uintptr_t>(arctrace_patched_call_returns) ||
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
