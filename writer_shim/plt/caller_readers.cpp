// Finds sanitizers, libc and modules that copy stacks, and functions with hooks of their
// own.
#include "writer_shim/plt/caller_readers.hpp"

#include "src/base/shared_atomics.hpp"
#include "src/base/text.hpp"
#include "src/shim_protocol/call_kinds.hpp"
#include "writer_shim/arch/sled_jumps.hpp"
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
          is_entry_only(call.kind)};
}

const char* name_of_slot(uintptr_t code, uint64_t index) {
  ModuleImage image;
  if (!read_loaded_module(code, image) || index >= image.jump_slot_count) return nullptr;
  return image.name_of(image.jump_slots[index]);
}

JumpTarget unbound_target(const char* name) {
  return {find_function(name, SearchFrom::kProgram), is_entry_only(call_kind(name))};
}

namespace {

constexpr const char* kCopiers[] = {"_greenlet.", "greenlet."};

// Functions of libc that call functions of the program.
constexpr const char* kCallers[] = {
    "bsearch", "call_once", "fclose",  "fflush",  "fread",  "ftw",     "fwrite",
    "glob",    "lfind",     "lsearch", "nftw",    "printf", "qsort",   "qsort_r",
    "scandir", "tdestroy",  "tfind",   "tsearch", "twalk",  "twalk_r", "pthread_once"};

uint32_t stacks_are_copied;

bool calls_back(const char* name) {
  for (const char* caller : kCallers) {
    if (equal(name, caller)) return true;
  }
  return false;
}

}  // namespace

void detect_stack_copier(const char* path) {
  if (stacks_are_copied != 0 || path == nullptr) return;
  const char* name = file_name(path);
  for (const char* copier : kCopiers) {
    if (starts_with(name, copier)) IpcAtomics::store_relaxed(stacks_are_copied, 1U);
  }
  if (stacks_are_copied == 0) return;
  for (LibraryCall& call : library_calls) {
    if (call.kind != CallKind::kWrapped ||
        !may_copy_stack_inside(call.name, IpcAtomics::load_relaxed(call.plain.target))) {
      continue;
    }
    call.kind = CallKind::kEntryOnly;
    IpcAtomics::store_release(call.plain.ready_at, ARCTRACE_SHIM_NOT_READY);
  }
}

bool may_copy_stack_inside(const char* name, uintptr_t target) {
  return IpcAtomics::load_relaxed(stacks_are_copied) != 0 &&
         (!is_of_libc(target) || calls_back(name));
}

}  // namespace arctrace::shim
