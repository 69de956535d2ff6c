// Hooks modules' library calls, one module at a time, under the loader's lock. Modules
// that come later are hooked from their own initialization function, because only then
// they are relocated.
#include "writer_shim/plt/library_hooks.hpp"

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

#include "src/api/shim_interface.h"
#include "src/base/large_table.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/base/text.hpp"
#include "src/shim_protocol/call_kinds.hpp"
#include "writer_shim/arch/call_stubs.h"
#include "writer_shim/arch/code_changes.hpp"
#include "writer_shim/arch/code_references.hpp"
#include "writer_shim/arch/loader_calls.hpp"
#include "writer_shim/arch/machine.hpp"
#include "writer_shim/base/glibc.hpp"
#include "writer_shim/elf/loaded_objects.hpp"
#include "writer_shim/elf/module_slots.hpp"
#include "writer_shim/elf/symbol_search.hpp"
#include "writer_shim/filter/function_patterns.hpp"
#include "writer_shim/filter/live_filter.hpp"
#include "writer_shim/plt/call_table.hpp"
#include "writer_shim/plt/caller_readers.hpp"
#include "writer_shim/unwind/frame_finder.hpp"

namespace arctrace::shim {
namespace {

// A module whose slots point to stubs, or that is not to be hooked.
struct Module {
  AddressRange range;  // empty: a free entry
  PltCells cells;
  bool seen;
  bool is_program;
  bool has_all_stubs;  // for all of its calls, not only for some
};

constexpr uint32_t kFirstModules = 16;
ARCTRACE_LARGE_TABLE constinit Module other_modules[kModulesMax - kFirstModules]{};
constinit SplitTable<other_modules, kFirstModules> modules{};
uint32_t modules_used;

LibraryCalls hooked_calls = LibraryCalls::kNone;
constinit AddressRange own_library;  // libarctrace.so
void (*module_hook)();               // null: none was set

// The function that a call of `name` will probably find when it is bound; 0: not known.
uint64_t likely_target(const char* name) {
  const uintptr_t next = find_function(name, SearchFrom::kNext);
  return next != 0 ? next : find_function(name, SearchFrom::kProgram);
}

// The filter's flags for calls of the function `name` at `target`.
uint32_t call_filter_flags(const char* name, uint64_t target) {
  if (!filter_needs_module()) return filter_flags(name, "", 0);
  const FunctionFile file = file_of_function(static_cast<uintptr_t>(target), name);
  return filter_flags(name, file.path, file.size);
}

// The kind of a function with these flags.
CallKind kind_with_flags(CallKind kind, uint32_t flags) {
  const bool is_entry_only =
      kind == CallKind::kUnexamined && (flags & ARCTRACE_SHIM_ENTRY_ONLY) != 0;
  return is_entry_only ? CallKind::kEntryOnly : kind;
}

// Which calls of a module are hooked: all, or those that abandon frames.
enum class Hooked : uint8_t { kAll, kJumps };

CallKind kind_of(const char* name, Hooked which) {
  return which == Hooked::kAll ? call_kind(name) : frames_only_call_kind(name);
}

// Takes a stub for calls of `name` through `slot`, whose target is `target` unless a
// `binding` is needed. kNoStub: they are not to be hooked, or no stub is free.
uint32_t stub_for(const char* name, uint64_t target, uint64_t* slot,
                  const LazyBinding& binding, Hooked which) {
  const CallKind kind = kind_of(name, which);
  if (target == 0 || is_stub(target) || kind == CallKind::kSkipped ||
      own_library.contains(target)) {
    return kNoStub;
  }
  const uint32_t number = take_stub();
  if (number != kNoStub) {
    const bool is_bound = !binding.is_needed();
    const uint64_t function =
        is_bound || !filter_needs_module() ? target : likely_target(name);
    const auto filter = static_cast<uint16_t>(call_filter_flags(name, function));
    library_calls[number] = {
        .plain = {target, 0, ARCTRACE_SHIM_NOT_READY, filter, filter},
        .slot = slot,
        .name = name,
        .binding = binding,
        .arg_specs = static_cast<uint16_t>(arg_specs_of(name, nullptr)),
        .kind = kind_with_flags(kind, filter),
        .is_bound = is_bound};
  }
  return number;
}

void hook_slot(uint64_t* slot, uint64_t target, const char* name,
               const LazyBinding& binding, Hooked which) {
  const uint32_t number = stub_for(name, target, slot, binding, which);
  // A thread that calls through the slot finds the stub's entry complete.
  if (number != kNoStub) {
    IpcAtomics::store_release(*slot, uint64_t{stub_address(number)});
  }
}

// When the modules that are being hooked were relocated.
Relocated relocated = Relocated::kAtStart;

// Hooks the slots of functions that have no PLT entry of their own, if the module's code
// only uses them to call the function.
void hook_other_slots(const ModuleImage& image, PltCells& cells, Hooked which,
                      bool is_past_shim) {
  constexpr size_t kUsesMax = 1024;
  ARCTRACE_LARGE_TABLE static constinit SlotUse uses[kUsesMax]{};
  ARCTRACE_LARGE_TABLE static constinit const char* names[kUsesMax]{};
  size_t count = 0;
  for (size_t i = 0; i < image.relocation_count && count < kUsesMax; ++i) {
    const ElfW(Rela)& relocation = image.relocations[i];
    if (ELF64_R_TYPE(relocation.r_info) != machine::kDataSlot) continue;
    const char* name = image.name_of(relocation);
    if (!image.is_function_of_another(relocation)) continue;
    uint64_t* slot = image.slot_of(relocation);
    if (is_past_shim) bind_data_slot_to_shim(image, relocation);
    lead_slot(image, relocation, slot, name, relocated);
    if (kind_of(name, which) == CallKind::kSkipped) continue;
    size_t at = count++;
    for (; at > 0 && uses[at - 1].slot > slot; --at) {
      uses[at] = uses[at - 1];
      names[at] = names[at - 1];
    }
    uses[at] = {slot, nullptr, false, false};
    names[at] = name;
  }
  if (count == 0) return;
  find_slot_uses(image, uses, count);
  for (size_t i = 0; i < count; ++i) {
    const SlotUse& use = uses[i];
    if (!use.is_read) {
      if (use.is_called || use.jump != nullptr) {
        hook_slot(use.slot, IpcAtomics::load_relaxed(*use.slot), names[i], {}, which);
      }
    } else if constexpr (machine::kPltReadsDataSlots) {
      if (use.jump == nullptr) continue;
      const uint32_t number =
          stub_for(names[i], IpcAtomics::load_relaxed(*use.slot), use.jump, {}, which);
      if (number != kNoStub && !cells.redirect(image, use.jump, stub_address(number))) {
        library_calls[number].slot = nullptr;
      }
    }
  }
}

// Whether a stub stands in place of the module's initialization function.
bool awaited_initialization(const ModuleImage& image) {
  return image.initializer != nullptr && is_stub(image.bias + *image.initializer);
}

// Restores the initialization function that the module's file has.
void restore_initializer(const ModuleImage& image) {
  if (!awaited_initialization(image)) return;
  const LibraryCall& call = call_of_stub(image.bias + *image.initializer);
  *image.initializer = call.plain.target - image.bias;
}

// Whether hooks, or the loader, call functions of the module.
bool is_excluded(const ModuleImage& image) {
  static const uintptr_t libc = find_function("gnu_get_libc_version", SearchFrom::kNext);
  static const uintptr_t loader = getauxval(AT_BASE);
  static const uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);
  return is_own_module(image) || image.range.contains(libc) ||
         image.range.contains(loader) || image.range.contains(vdso);
}

// Whether slots have to change in a module whose calls are not recorded, because it uses
// this function: the function abandons frames, or its calls are led elsewhere.
bool is_hooked_for_frames_only(const char* name) {
  return frames_only_call_kind(name) != CallKind::kSkipped || are_led(name);
}

// Whether the module uses such a function.
bool has_frames_only_hooks(const ModuleImage& image) {
  const auto are_among = [&image](const ElfW(Rela) * slots, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const auto type = ELF64_R_TYPE(slots[i].r_info);
      if ((type == machine::kJumpSlot || type == machine::kDataSlot) &&
          is_hooked_for_frames_only(image.name_of(slots[i]))) {
        return true;
      }
    }
    return false;
  };
  return are_among(image.jump_slots, image.jump_slot_count) ||
         are_among(image.relocations, image.relocation_count);
}

// Whether libgcc calls its function by the slot: it distinguishes frames by the
// function's result, which must not be changed for it.
bool is_unwinders_own(const ModuleImage& image, const ElfW(Rela) & relocation) {
  return !image.is_of_another(relocation) &&
         call_kind(image.name_of(relocation)) == CallKind::kFrameAddress;
}

void hook_slots(const ModuleImage& image, PltCells& cells, Hooked which) {
  const bool is_past_shim = is_bound_past_shim(image, relocated);
  if (which == Hooked::kJumps && !is_past_shim && !has_frames_only_hooks(image) &&
      !awaited_initialization(image)) {
    return;
  }
  const WritableData writable(image.read_only);
  if (writable.failed()) return;
  restore_initializer(image);
  for (size_t i = 0; i < image.jump_slot_count; ++i) {
    const ElfW(Rela)& relocation = image.jump_slots[i];
    if (ELF64_R_TYPE(relocation.r_info) != machine::kJumpSlot) continue;
    uint64_t* slot = image.slot_of(relocation);
    const char* name = image.name_of(relocation);
    if (is_past_shim) bind_jump_slot_to_shim(image, i);
    lead_slot(image, relocation, slot, name, relocated);
    if (is_unwinders_own(image, relocation)) continue;
    const uint64_t target = IpcAtomics::load_relaxed(*slot);
    bool is_known = false;
    const LazyBinding binding = find_lazy_binding(image, i, target, is_known);
    if (is_known) hook_slot(slot, target, name, binding, which);
  }
  hook_other_slots(image, cells, which, is_past_shim);
}

// The calls of the module that are hooked in the present session.
Hooked hooked_of(const Module& module) {
  const bool is_recorded = hooked_calls == LibraryCalls::kAll ||
                           (hooked_calls == LibraryCalls::kProgram && module.is_program);
  return is_recorded ? Hooked::kAll : Hooked::kJumps;
}

// Hooks all calls of a module of which only some are hooked.
void hook_more(const ModuleImage& image, Module& module) {
  if (module.has_all_stubs || hooked_of(module) != Hooked::kAll || is_excluded(image)) {
    return;
  }
  module.has_all_stubs = true;
  hook_slots(image, module.cells, Hooked::kAll);
}

// `is_first`: the program is the first module.
int hook_module(dl_phdr_info* info, size_t, void* is_first) {
  const bool is_program = *static_cast<bool*>(is_first);
  *static_cast<bool*>(is_first) = false;
  ModuleImage image;
  if (!read_module(*info, image)) return 0;
  uint32_t free = modules_used;
  for (uint32_t i = 0; i < modules_used; ++i) {
    if (modules[i].range.low == image.range.low) {
      hook_more(image, modules[i]);
      return 0;
    }
    if (modules[i].range.high == 0) free = i;
  }
  if (free == kModulesMax) return 1;
  if (free == modules_used) ++modules_used;
  Module& module = modules[free];
  module = {image.range, {}, true, is_program, false};
  const Hooked which = hooked_of(module);
  module.has_all_stubs = which == Hooked::kAll;
  set_loaded_object(free, *info, image.range);
  detect_stack_copier(info->dlpi_name);
  detect_libunwind(info->dlpi_name);
  if (!is_excluded(image)) {
    hook_slots(image, module.cells, which);
  }
  return 0;
}

int find_own_library(dl_phdr_info* info, size_t, void*) {
  ModuleImage image;
  if (!read_module(*info, image) || !image.range.contains(reinterpret_cast<uintptr_t>(
                                        arctrace_unwinding.pending_calls))) {
    return 0;
  }
  own_library = image.range;
  return 1;
}

int see_module(dl_phdr_info* info, size_t, void* are_unrelocated) {
  ModuleImage image;
  if (!read_module(*info, image)) return 0;
  for (uint32_t i = 0; i < modules_used; ++i) {
    if (modules[i].range.low != image.range.low) continue;
    modules[i].seen = true;
    return 0;
  }
  if (*static_cast<bool*>(are_unrelocated)) await_initialization(image);
  return 0;
}

// The module in whose slots, or entries of the PLT, the call's slot is; null: none.
const Module* module_of(const LibraryCall& call) {
  for (uint32_t i = 0; i < modules_used; ++i) {
    if (modules[i].range.contains(reinterpret_cast<uintptr_t>(call.slot))) {
      return &modules[i];
    }
  }
  return nullptr;
}

// Has the next call of a stub that a function's own jump leads to apply the present
// filter.
void renew_function(LibraryCall& call) {
  const KnownFunction function = known_function(reinterpret_cast<uintptr_t>(call.slot));
  IpcAtomics::store_relaxed(call.plain.ready_at, ARCTRACE_SHIM_NOT_READY);
  call.name = function.name;
  call.arg_specs = static_cast<uint16_t>(function.arg_specs);
  call.kind = kind_with_flags(CallKind::kUnexamined, function.flags_at_start);
  call.plain.filter_at_start = static_cast<uint16_t>(function.flags_at_start);
  IpcAtomics::store_relaxed(call.plain.filter, call.plain.filter_at_start);
  IpcAtomics::store_relaxed(call.generation, uint32_t{0});
}

// Has the next call of any stub apply the present filter.
void renew(LibraryCall& call) {
  // A patched function is renewed with its image.
  if (call.kind == CallKind::kInitializer || is_patch_code(call.plain.target)) return;
  if (call.plain.key == static_cast<uint64_t>(reinterpret_cast<uintptr_t>(call.slot))) {
    renew_function(call);
    return;
  }
  const auto address = static_cast<uintptr_t>(call.plain.target);
  const Module* module = module_of(call);
  const auto filter = static_cast<uint16_t>(call_filter_flags(call.name, address));
  const CallKind kind =
      kind_of(call.name, module == nullptr ? Hooked::kJumps : hooked_of(*module));
  IpcAtomics::store_relaxed(call.plain.ready_at, ARCTRACE_SHIM_NOT_READY);
  call.arg_specs = static_cast<uint16_t>(arg_specs_of(call.name, nullptr));
  call.kind = kind_with_flags(kind, filter);
  call.plain.filter_at_start = filter;
  IpcAtomics::store_relaxed(call.plain.filter, filter);
  IpcAtomics::store_relaxed(call.generation, uint32_t{0});
  IpcAtomics::store_relaxed(call.plain.key, uint64_t{0});
}

}  // namespace

void renew_library_hooks(LibraryCalls which) {
  hooked_calls = which;
  hook_new_modules();
  visit_calls(renew);
}

void hook_library_calls(LibraryCalls which) {
  if constexpr (machine::kExchangesReturns) {
    constexpr uintptr_t kBlock = 512;
    arctrace_unwinding.pending_calls = arctrace_shim_pending_calls(
        reinterpret_cast<uintptr_t>(arctrace_call_returns) & ~(kBlock - 1));
  } else {
    arctrace_unwinding.pending_calls = arctrace_shim_pending_calls(0);
  }
  dl_iterate_phdr(find_own_library, nullptr);
  find_runtimes();
  hooked_calls = which;
  hook_new_modules();
  relocated = Relocated::kLater;
}

void await_initialization(const ModuleImage& image) {
  if (image.initializer == nullptr) return;
  const uintptr_t target = image.bias + *image.initializer;
  const uint32_t number = is_stub(target) ? kNoStub : take_stub();
  if (number == kNoStub) return;
  library_calls[number] = {.plain = {target, 0, ARCTRACE_SHIM_NOT_READY, 0, 0},
                           .slot = image.initializer,
                           .name = "",
                           .kind = CallKind::kInitializer,
                           .is_bound = 1};
  *image.initializer = stub_address(number) - image.bias;
}

void module_is_initialized() {
  hook_new_modules();
  if (module_hook != nullptr) module_hook();
}

void set_module_hook(void (*hook)()) { module_hook = hook; }

void hook_new_modules() {
  bool is_first = true;
  dl_iterate_phdr(hook_module, &is_first);
}

bool is_own_module(const ModuleImage& image) {
  return image.range.contains(reinterpret_cast<uintptr_t>(&library_calls)) ||
         image.range.contains(own_library.low);
}

bool is_own_function(uintptr_t address) { return own_library.contains(address); }

void library_modules_changed(bool are_unrelocated) {
  for (uint32_t i = 0; i < modules_used; ++i) modules[i].seen = false;
  dl_iterate_phdr(see_module, &are_unrelocated);
  for (uint32_t i = 0; i < modules_used; ++i) {
    if (modules[i].seen || modules[i].range.high == 0) continue;
    free_stubs(modules[i].range);
    clear_loaded_object(i);
    if constexpr (machine::kPltReadsDataSlots) modules[i].cells.release();
    modules[i].range = {};
  }
}

}  // namespace arctrace::shim
