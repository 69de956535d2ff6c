#include "writer_shim/arch/jump_memory.hpp"

#include <sys/syscall.h>

#include "src/base/raw_syscall.hpp"
#include "src/base/shared_atomics.hpp"

namespace arctrace::shim {
namespace {

struct JumpMemory {
  uintptr_t code;
  uint64_t low;  // 0: a free entry
  size_t size;
};
constexpr uint32_t kMost = 4096;
// Changed under the loader's lock, one entry at a time; any thread may look.
constinit JumpMemory jump_memory[kMost]{};
uint32_t entries_used;

}  // namespace

void note_jump_memory(uintptr_t code, uintptr_t low, size_t size) {
  for (uint32_t i = 0; i < kMost; ++i) {
    JumpMemory& entry = jump_memory[i];
    if (entry.low != 0) continue;
    entry.code = code;
    entry.size = size;
    IpcAtomics::store_release(entry.low, uint64_t{low});
    if (i >= entries_used) IpcAtomics::store_release(entries_used, i + 1);
    return;
  }
}

void release_jump_memory(const AddressRange& module) {
  for (JumpMemory& entry : jump_memory) {
    if (entry.low == 0 || !module.contains(entry.code)) continue;
    const uint64_t low = entry.low;
    IpcAtomics::store_release(entry.low, uint64_t{0});
    raw_syscall(SYS_munmap, static_cast<long>(low), static_cast<long>(entry.size));
  }
}

bool is_jump_memory(uintptr_t address) {
  const uint32_t used = IpcAtomics::load_acquire(entries_used);
  for (uint32_t i = 0; i < used; ++i) {
    const uint64_t low = IpcAtomics::load_acquire(jump_memory[i].low);
    if (low != 0 && address >= low && address - low < jump_memory[i].size) return true;
  }
  return false;
}

}  // namespace arctrace::shim
