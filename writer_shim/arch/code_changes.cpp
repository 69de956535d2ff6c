// The list of noted changes, and the memory beside the program's code. The list grows by
// copies, so that it is one piece when the recorder reads it.
#include "writer_shim/arch/code_changes.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "src/base/large_table.hpp"
#include "src/base/memory.hpp"
#include "src/base/raw_syscall.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/shim_protocol/joining.hpp"
#include "src/shim_protocol/patching.hpp"

extern "C" {
// The recorder finds the list by this name.
__attribute__((visibility("default"))) arctrace::shim::CodeChanges arctrace_code_changes;
}

namespace arctrace::shim {
namespace {

bool are_noted;
int forced = -1;  // /proc/self/mem; -1: changes are not forced
uint32_t capacity;

CodeChange* list() {
  return reinterpret_cast<CodeChange*>(
      static_cast<uintptr_t>(arctrace_code_changes.changes));
}

bool reserve_change() {
  constexpr uint32_t kCapacityMin = 128;
  if (arctrace_code_changes.count < capacity) return true;
  const uint32_t wanted = capacity == 0 ? kCapacityMin : 2 * capacity;
  if (wanted > kCodeChangesMax) return false;
  void* const larger = sys::map(wanted * sizeof(CodeChange), PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (larger == nullptr) return false;
  const uint32_t count = arctrace_code_changes.count;
  if (count != 0) copy_bytes(larger, list(), count * sizeof(CodeChange));
  free_noted_changes();
  arctrace_code_changes = {reinterpret_cast<uintptr_t>(larger), count, 0};
  capacity = wanted;
  return true;
}

bool note(unsigned char* at, const unsigned char* bytes, size_t size) {
  if (!reserve_change()) return false;
  CodeChange change{
      reinterpret_cast<uintptr_t>(at), static_cast<uint32_t>(size), 0, {}, {}};
  copy_bytes(change.was, at, size);
  copy_bytes(change.now, bytes, size);
  list()[arctrace_code_changes.count++] = change;
  return true;
}

}  // namespace

NotedChanges::NotedChanges(bool begins) {
  if (begins) free_noted_changes();
  are_noted = true;
}

NotedChanges::~NotedChanges() { are_noted = false; }

bool notes_changes() { return are_noted; }

ForcedChanges::ForcedChanges(bool are_forced) {
  if (are_forced) {
    forced = static_cast<int>(sys::open("/proc/self/mem", O_RDWR | O_CLOEXEC));
  }
}

ForcedChanges::~ForcedChanges() {
  if (forced >= 0) sys::close(forced);
  forced = -1;
}

ForcedChanges::operator bool() const { return forced >= 0; }

bool change_code(unsigned char* at, const unsigned char* bytes, size_t size) {
  if (!are_noted && forced >= 0) {
    return raw_syscall(SYS_pwrite64, forced, sys::pointer_argument(bytes),
                       static_cast<long>(size),
                       sys::pointer_argument(at)) == static_cast<long>(size);
  }
  if (!are_noted) {
    copy_bytes(at, bytes, size);
    return true;
  }
  while (size > 0) {
    const size_t part = size < kCodeChangeMax ? size : kCodeChangeMax;
    if (!note(at, bytes, part)) return false;
    at += part;
    bytes += part;
    size -= part;
  }
  return true;
}

bool is_change_noted(const AddressRange& code) {
  for (uint32_t i = 0; i < arctrace_code_changes.count; ++i) {
    const CodeChange& change = list()[i];
    if (change.at < code.high && change.at + change.size > code.low) return true;
  }
  return false;
}

void forget_changes(const AddressRange& module) {
  for (uint32_t i = 0; i < arctrace_code_changes.count; ++i) {
    if (module.contains(list()[i].at)) list()[i].size = 0;
  }
}

void free_noted_changes() {
  if (capacity != 0) {
    raw_syscall(SYS_munmap, static_cast<long>(arctrace_code_changes.changes),
                static_cast<long>(capacity * sizeof(CodeChange)));
  }
  arctrace_code_changes = {};
  capacity = 0;
}

namespace {

struct JumpMemory {
  uintptr_t code;
  uint64_t low;  // 0: a free entry
  size_t size;
};
constexpr uint32_t kMost = 4096;
// Entries are changed under the loader's lock, one at a time; any thread may read them.
ARCTRACE_LARGE_TABLE constinit JumpMemory jump_memory[kMost]{};
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

namespace {

ARCTRACE_LARGE_TABLE constinit AddressRange images[kPatchedModulesMax]{};
uint32_t image_count;

}  // namespace

bool note_patch_code(AddressRange image) {
  if (image_count == kPatchedModulesMax) return false;
  images[image_count] = image;
  // Release: a thread that sees the number sees the image.
  IpcAtomics::store_release(image_count, image_count + 1);
  return true;
}

bool is_patch_code(uintptr_t address) {
  const uint32_t count = IpcAtomics::load_acquire(image_count);
  for (uint32_t i = 0; i < count; ++i) {
    if (images[i].contains(address)) return true;
  }
  return false;
}

}  // namespace arctrace::shim
