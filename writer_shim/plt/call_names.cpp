// A hash table without locks, that compares hashes only: names that share one of 62 bits
// would share an id.
#include "writer_shim/plt/call_names.hpp"

#include "src/api/shim_interface.h"
#include "src/base/shared_atomics.hpp"
#include "writer_shim/arch/call_stubs.h"

namespace arctrace::shim {
namespace {

// A name that has an id. They stay when a module is unloaded, so that one that is loaded
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
constinit KnownName names[kFirstNamesMax + kOtherNamesMax]{};

// The entry that the i-th probe for the name of `hash` looks at.
KnownName& probe(uint64_t hash, uint32_t i) {
  const uint64_t start = hash / 4 + i % kNameProbes;
  return names[i < kNameProbes ? start % kFirstNamesMax
                               : kFirstNamesMax + start % kOtherNamesMax];
}

// FNV-1a.
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

}  // namespace arctrace::shim
