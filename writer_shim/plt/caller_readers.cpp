#include "writer_shim/plt/caller_readers.hpp"

#include "src/base/shared_atomics.hpp"
#include "src/shim_protocol/call_kinds.hpp"
#include "writer_shim/arch/caller_use.hpp"
#include "writer_shim/arch/sleds.hpp"
#include "writer_shim/elf/loaded_objects.hpp"
#include "writer_shim/elf/module_slots.hpp"
#include "writer_shim/elf/symbol_search.hpp"
#include "writer_shim/plt/call_table.hpp"

namespace arctrace::shim {
namespace {

// A function of each sanitizer's runtime, which is a library or part of the program.
constexpr const char* kRuntimes[] = {
    "__asan_init", "__hwasan_init", "__lsan_do_leak_check",
    "__msan_init", "__tsan_init",   "__ubsan_handle_add_overflow"};
constexpr uint32_t kRuntimeCount = sizeof kRuntimes / sizeof *kRuntimes;
constinit AddressRange sanitizers[kRuntimeCount]{};
constinit AddressRange libc{};

// The module that has the function; empty: there is none.
AddressRange module_with(const char* function) {
  const uintptr_t found = find_function(function, SearchFrom::kProgram);
  return found == 0 ? AddressRange{} : file_of_function(found, function).module;
}

}  // namespace

void find_runtimes() {
  libc = module_with("gnu_get_libc_version");
  for (uint32_t i = 0; i < kRuntimeCount; ++i) sanitizers[i] = module_with(kRuntimes[i]);
}

bool is_of_libc(uintptr_t function) { return libc.contains(function); }

bool is_of_sanitizer(uintptr_t function) {
  for (const AddressRange& range : sanitizers) {
    if (range.contains(function)) return true;
  }
  return false;
}

bool has_own_hook(uintptr_t function) {
  return has_jump(function) || calls_compiled_in_hook(function);
}

JumpTarget jump_target(uintptr_t target) {
  if (!is_stub(target)) return {target, false};
  LibraryCall& call = call_of_stub(target);
  if (IpcAtomics::load_acquire(call.is_bound) == 0) return unbound_target(call.name);
  return {static_cast<uintptr_t>(IpcAtomics::load_relaxed(call.plain.target)),
          is_passed(call.kind)};
}

const char* name_of_slot(uintptr_t code, uint64_t index) {
  ModuleImage image;
  if (!read_loaded_module(code, image) || index >= image.jump_slot_count) return nullptr;
  return image.name_of(image.jump_slots[index]);
}

JumpTarget unbound_target(const char* name) {
  return {find_function(name, SearchFrom::kProgram), is_passed(call_kind(name))};
}

}  // namespace arctrace::shim
