// The list grows by copies, so that it is one piece when the recorder reads it.
#include "writer_shim/arch/code_changes.hpp"

#include <sys/mman.h>

#include "src/base/memory.hpp"
#include "src/base/raw_syscall.hpp"
#include "src/shim_protocol/code_changes.hpp"

extern "C" {
// By this name the recorder finds it.
__attribute__((visibility("default"))) arctrace::shim::CodeChanges arctrace_code_changes;
}

namespace arctrace::shim {
namespace {

bool are_noted;
uint32_t capacity;

CodeChange* list() {
  return reinterpret_cast<CodeChange*>(
      static_cast<uintptr_t>(arctrace_code_changes.changes));
}

bool make_room() {
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
  if (!make_room()) return false;
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

bool change_code(unsigned char* at, const unsigned char* bytes, size_t size) {
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

}  // namespace arctrace::shim
