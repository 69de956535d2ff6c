#include "writer_shim/library_hooks.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "src/raw_syscall.hpp"
#include "writer_shim/call_kinds.hpp"
#include "writer_shim/call_names.hpp"
#include "writer_shim/call_stubs.h"
#include "writer_shim/call_values.hpp"
#include "writer_shim/code_references.hpp"
#include "writer_shim/function_patterns.hpp"
#include "writer_shim/glibc.hpp"
#include "writer_shim/hook.hpp"
#include "writer_shim/lazy_binding.hpp"
#include "writer_shim/live_choice.hpp"
#include "writer_shim/machine.hpp"
#include "writer_shim/module_slots.hpp"
#include "writer_shim/page_protection.hpp"
#include "writer_shim/plt_cells.hpp"

const uint64_t* arctrace_pending_calls;

namespace arctrace::shim {
namespace {

// What a stub stands for; a cache line.
struct alignas(64) LibraryCall {
  uint64_t target;   // of a call that is not bound yet: what the slot held
  uint64_t key;      // of its frames; 0: it was not called yet
  uint64_t* slot;    // null: the stub is free
  const char* name;  // in the module that calls
  LazyBinding binding;
  uint32_t is_bound;
  CallKind kind;
  // Followed, bound, named, and without values: the hot path's one question.
  uint8_t is_ready;
  uint16_t values;  // their number (call_values.hpp); 0: none
  // Flags of arctrace_shim_call, by the choice number `round`; and before any.
  uint16_t filter;
  uint16_t filter_at_start;
  uint32_t round;
};

static_assert(sizeof(LibraryCall) == 64);

constinit LibraryCall calls[ARCTRACE_STUB_COUNT]{};
uint32_t calls_used;   // behind the last one that is not free
uint32_t likely_free;  // index

// A module whose slots point to stubs, or that is not to be hooked.
struct Module {
  AddressRange range;  // empty: a free entry
  PltCells cells;
  bool seen;
};

constexpr uint32_t kModulesMax = 4096;
constinit Module modules[kModulesMax]{};
uint32_t modules_used;

LibraryCalls chosen = LibraryCalls::kNone;
constinit AddressRange own_library;  // libarctrace.so

// Whether it needs nothing but to be recorded, once it is ready.
bool is_plain(const LibraryCall& call) {
  return call.kind == CallKind::kFollowed && call.values == 0;
}

uintptr_t stub_address(uint32_t number) {
  return reinterpret_cast<uintptr_t>(arctrace_call_stubs) +
         (uintptr_t{number} << ARCTRACE_STUB_SHIFT);
}

bool is_stub(uintptr_t address) {
  return address >= stub_address(0) && address < stub_address(ARCTRACE_STUB_COUNT);
}

// UINT32_MAX: there is none.
uint32_t take_stub() {
  for (uint32_t i = 0; i < ARCTRACE_STUB_COUNT; ++i) {
    const uint32_t number = (likely_free + i) % ARCTRACE_STUB_COUNT;
    // What was never used is not read: its page would be faulted in twice.
    if (number < calls_used && calls[number].slot != nullptr) continue;
    likely_free = number + 1;
    if (number >= calls_used) calls_used = number + 1;
    return number;
  }
  return UINT32_MAX;
}

// Makes the module's read-only data writable while it lives.
class WritableData {
 public:
  explicit WritableData(const AddressRange& range) : range_(range) {
    worked_ =
        is_empty() || protect(range.low, range.high - range.low, PROT_READ | PROT_WRITE);
  }
  ~WritableData() {
    if (!is_empty()) protect(range_.low, range_.high - range_.low, PROT_READ);
  }
  WritableData(const WritableData&) = delete;
  WritableData& operator=(const WritableData&) = delete;
  bool failed() const { return !worked_; }

 private:
  bool is_empty() const { return range_.low >= range_.high; }
  AddressRange range_;
  bool worked_;
};

// The function that a call of `name` will probably find when it is bound; 0: not known.
uint64_t likely_target(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) found = dlsym(RTLD_DEFAULT, name);
  if (found == nullptr) dlerror();  // nobody is to find ours
  return reinterpret_cast<uintptr_t>(found);
}

// What the user chose of the function `name` at `target`.
uint32_t call_filter_flags(const char* name, uint64_t target) {
  if (!choice_needs_place()) return filter_flags(name, "", 0);
  Dl_info info{};
  const ElfW(Sym)* symbol = nullptr;
  auto* address = reinterpret_cast<void*>(static_cast<uintptr_t>(target));
  const bool found =
      dladdr1(address, &info, const_cast<void**>(reinterpret_cast<const void**>(&symbol)),
              RTLD_DL_SYMENT) != 0;
  const bool is_sized = found && symbol != nullptr && info.dli_saddr == address;
  return filter_flags(name, found ? info.dli_fname : "", is_sized ? symbol->st_size : 0);
}

// The stub for calls of `name`, which are of `target` unless a `binding` is needed,
// through what stands at `slot`. UINT32_MAX: they are not to be hooked, or there is none
// left.
uint32_t stub_for(const char* name, uint64_t target, uint64_t* slot,
                  const LazyBinding& binding) {
  const CallKind kind = call_kind(name);
  if (target == 0 || is_stub(target) || kind == CallKind::kUntouched ||
      own_library.contains(target)) {
    return UINT32_MAX;
  }
  const uint32_t number = take_stub();
  if (number != UINT32_MAX) {
    const bool is_bound = !binding.is_needed();
    const uint64_t place =
        is_bound || !choice_needs_place() ? target : likely_target(name);
    LibraryCall& call = calls[number];
    call = {.target = target,
            .key = 0,
            .slot = slot,
            .name = name,
            .binding = binding,
            .is_bound = is_bound,
            .kind = kind,
            .is_ready = 0,
            .values = static_cast<uint16_t>(values_of(name, nullptr)),
            .filter = 0,
            .filter_at_start = static_cast<uint16_t>(call_filter_flags(name, place)),
            .round = 0};
    call.filter = call.filter_at_start;
  }
  return number;
}

void hook_slot(uint64_t* slot, uint64_t target, const char* name,
               const LazyBinding& binding) {
  const uint32_t number = stub_for(name, target, slot, binding);
  // Whoever calls through the slot finds the stub's call complete.
  if (number != UINT32_MAX) {
    IpcAtomics::store_release(*slot, uint64_t{stub_address(number)});
  }
}

// Behind the module's other slots, those that it has for functions without a PLT entry
// of their own, where its code does nothing with them but to call the function.
void hook_other_slots(const ModuleImage& image, PltCells& cells) {
  constexpr size_t kUsesMax = 1024;
  static constinit SlotUse uses[kUsesMax]{};
  static constinit const char* names[kUsesMax]{};
  size_t count = 0;
  for (size_t i = 0; i < image.relocation_count && count < kUsesMax; ++i) {
    const ElfW(Rela)& relocation = image.relocations[i];
    if (ELF64_R_TYPE(relocation.r_info) != machine::kDataSlot) continue;
    const char* name = image.name_of(relocation);
    if (!image.is_function_of_another(relocation) ||
        call_kind(name) == CallKind::kUntouched) {
      continue;
    }
    uint64_t* slot = image.slot_of(relocation);
    size_t at = count++;
    for (; at > 0 && uses[at - 1].slot > slot; --at) {
      uses[at] = uses[at - 1];
      names[at] = names[at - 1];
    }
    uses[at] = {slot, nullptr, false, false};
    names[at] = name;
  }
  find_slot_uses(image, uses, count);
  for (size_t i = 0; i < count; ++i) {
    const SlotUse& use = uses[i];
    if (!use.is_read) {
      if (use.is_called || use.jump != nullptr) {
        hook_slot(use.slot, IpcAtomics::load_relaxed(*use.slot), names[i], {});
      }
    } else if constexpr (machine::kPltReadsDataSlots) {
      if (use.jump == nullptr) continue;
      const uint32_t number =
          stub_for(names[i], IpcAtomics::load_relaxed(*use.slot), use.jump, {});
      if (number != UINT32_MAX &&
          !cells.redirect(image, use.jump, stub_address(number))) {
        calls[number].slot = nullptr;
      }
    }
  }
}

// As the module's file has it, though nobody reads it a second time.
void restore_initializer(const ModuleImage& image) {
  if (image.initializer == nullptr) return;
  const uintptr_t stub = image.bias + *image.initializer;
  if (!is_stub(stub)) return;
  const uint64_t number = (stub - stub_address(0)) >> ARCTRACE_STUB_SHIFT;
  *image.initializer = calls[number].target - image.bias;
}

// Those that the hooks themselves, or the loader, run in.
bool is_excluded(const ModuleImage& image) {
  static const auto own = reinterpret_cast<uintptr_t>(&calls);
  static const auto libc =
      reinterpret_cast<uintptr_t>(dlsym(RTLD_NEXT, "gnu_get_libc_version"));
  static const uintptr_t loader = getauxval(AT_BASE);
  static const uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);
  return image.range.contains(own) || image.range.contains(own_library.low) ||
         image.range.contains(libc) || image.range.contains(loader) ||
         image.range.contains(vdso);
}

void hook_slots(const ModuleImage& image, PltCells& cells) {
  const WritableData writable(image.read_only);
  if (writable.failed()) return;
  restore_initializer(image);
  for (size_t i = 0; i < image.jump_slot_count; ++i) {
    const ElfW(Rela)& relocation = image.jump_slots[i];
    if (ELF64_R_TYPE(relocation.r_info) != machine::kJumpSlot) continue;
    uint64_t* slot = image.slot_of(relocation);
    const uint64_t target = IpcAtomics::load_relaxed(*slot);
    bool is_known = false;
    const LazyBinding binding = find_lazy_binding(image, i, target, is_known);
    if (is_known) hook_slot(slot, target, image.name_of(relocation), binding);
  }
  hook_other_slots(image, cells);
}

int hook_module(dl_phdr_info* info, size_t, void*) {
  ModuleImage image;
  if (!read_module(*info, image)) return 0;
  uint32_t free = modules_used;
  for (uint32_t i = 0; i < modules_used; ++i) {
    if (modules[i].range.low == image.range.low) return 0;
    if (modules[i].range.high == 0) free = i;
  }
  if (free == kModulesMax) return 1;
  if (free == modules_used) ++modules_used;
  modules[free] = {image.range, {}, true};
  if (!is_excluded(image)) hook_slots(image, modules[free].cells);
  return chosen == LibraryCalls::kAll ? 0 : 1;  // the program is the first
}

int find_own_library(dl_phdr_info* info, size_t, void*) {
  ModuleImage image;
  if (!read_module(*info, image) ||
      !image.range.contains(reinterpret_cast<uintptr_t>(arctrace_pending_calls))) {
    return 0;
  }
  own_library = image.range;
  return 1;
}

// A module is relocated when its initialization function is called, not before: has a
// stub called in its place, until then.
void await_initialization(const ModuleImage& image) {
  if (image.initializer == nullptr) return;
  const uintptr_t target = image.bias + *image.initializer;
  const uint32_t number = is_stub(target) ? UINT32_MAX : take_stub();
  if (number == UINT32_MAX) return;
  calls[number] = {.target = target,
                   .key = 0,
                   .slot = image.initializer,
                   .name = "",
                   .binding = {},
                   .is_bound = 1,
                   .kind = CallKind::kInitializer,
                   .is_ready = 0,
                   .values = 0,
                   .filter = 0,
                   .filter_at_start = 0,
                   .round = 0};
  *image.initializer = stub_address(number) - image.bias;
}

int see_module(dl_phdr_info* info, size_t, void*) {
  ModuleImage image;
  if (!read_module(*info, image)) return 0;
  for (uint32_t i = 0; i < modules_used; ++i) {
    if (modules[i].range.low != image.range.low) continue;
    modules[i].seen = true;
    return 0;
  }
  await_initialization(image);
  return 0;
}

void release_stubs(const AddressRange& module) {
  for (uint32_t i = 0; i < calls_used; ++i) {
    if (module.contains(reinterpret_cast<uintptr_t>(calls[i].slot))) {
      calls[i].slot = nullptr;
    }
  }
}

// With the loader's lock held: all that is loaded is relocated.
void initialize_module(LibraryCall& call) {
  dl_iterate_phdr(hook_module, nullptr);
  call.slot = nullptr;
}

__attribute__((noinline)) uint64_t name_call(LibraryCall& call) {
  const uint32_t id = call_name_id(call.name);
  // Without memory for its name: the reader finds one by the address.
  const uint64_t key =
      id != 0 ? ARCTRACE_FRAME_NAME_BIT | ARCTRACE_FRAME_LIBRARY_BIT | id : call.target;
  IpcAtomics::store_relaxed(call.key, key);
  return key;
}

// The loader binds the slot, and we hook it again. A call that another thread makes
// through it in between is not recorded. Returns the function's address.
__attribute__((noinline)) uintptr_t bind(LibraryCall& call) {
  const uintptr_t target = bind_lazily(call.binding);
  const bool is_own = own_library.contains(target);
  if (is_own) {
    call.kind = CallKind::kUntouched;
  } else {
    IpcAtomics::store_release(
        *call.slot, uint64_t{stub_address(static_cast<uint32_t>(&call - calls))});
  }
  IpcAtomics::store_relaxed(call.target, uint64_t{target});
  // Last: whoever sees it finds the target.
  IpcAtomics::store_release(call.is_bound, uint32_t{1});
  return target;
}

// The functions that are recorded have been chosen anew.
__attribute__((noinline)) void choose_again(LibraryCall& call) {
  uint32_t flags = 0;
  uint32_t round = 0;
  if (!choose_live(call.name, call.filter_at_start, flags, round)) return;
  IpcAtomics::store_relaxed(call.filter, static_cast<uint16_t>(flags));
  IpcAtomics::store_relaxed(call.round, round);
}

// Of a call that is not followed, or has values. Nonzero: it is to be called through.
__attribute__((noinline)) uintptr_t begin_special_call(const LibraryCall& call,
                                                       uint64_t key, uintptr_t* place,
                                                       uintptr_t frame_pointer,
                                                       uint32_t flags) {
  uintptr_t arguments[ARCTRACE_SHIM_ARGUMENTS_MAX];
  for (size_t i = 0; i < ARCTRACE_SHIM_ARGUMENTS_MAX; ++i) {
    arguments[i] = machine::argument_of(place, i);
  }
  const bool is_followed = call.kind == CallKind::kFollowed;
  const int returns = call.kind == CallKind::kPassed ? 1 : 0;
  if (call.values == 0) {
    arctrace_shim_call_passed(key, place, frame_pointer, flags, returns);
  } else if (!is_followed) {
    arctrace_shim_call_passed_with(key, place, frame_pointer, flags, returns, call.values,
                                   arguments);
  } else {
    return static_cast<uintptr_t>(arctrace_shim_call_begin_with(
        key, place, frame_pointer, flags, call.values, arguments));
  }
  return 0;
}

uint32_t flags_of(LibraryCall& call, uintptr_t return_address) {
  const uint32_t flags = IpcAtomics::load_relaxed(call.filter);
  return returns_to_stub(return_address) ? flags | ARCTRACE_SHIM_RETURNS_TO_SHIM : flags;
}

// The first call, and each of one that is not plain or was chosen anew.
__attribute__((noinline)) arctrace_call_route begin_unready_call(
    LibraryCall& call, uintptr_t* place, uintptr_t frame_pointer) {
  uintptr_t target = IpcAtomics::load_relaxed(call.target);
  if (call.kind == CallKind::kInitializer) {
    initialize_module(call);
    return {target, 0};
  }
  target = IpcAtomics::load_acquire(call.is_bound) == 0
               ? bind(call)
               : IpcAtomics::load_relaxed(call.target);
  if (call.kind == CallKind::kUntouched) return {target, 0};
  uint64_t key = IpcAtomics::load_relaxed(call.key);
  if (key == 0) key = name_call(call);
  if (live_round() != IpcAtomics::load_relaxed(call.round)) choose_again(call);
  const uint32_t flags = flags_of(call, *place);
  if (!is_plain(call)) {
    return {target, begin_special_call(call, key, place, frame_pointer, flags)};
  }
  // Whoever sees it finds the target and the key.
  IpcAtomics::store_release(call.is_ready, uint8_t{1});
  return {target, static_cast<uintptr_t>(
                      arctrace_shim_call_begin(key, place, frame_pointer, flags))};
}

}  // namespace

void hook_library_calls(LibraryCalls which) {
  arctrace_pending_calls = arctrace_shim_pending_calls();
  dl_iterate_phdr(find_own_library, nullptr);
  chosen = which;
  if (which == LibraryCalls::kNone) return;
  dl_iterate_phdr(hook_module, nullptr);
}

uintptr_t stub_for_function(const KnownFunction& function, uintptr_t target) {
  const uint32_t number = take_stub();
  if (number == UINT32_MAX) return 0;
  calls[number] = {.target = target,
                   .key = function.address,
                   .slot = reinterpret_cast<uint64_t*>(function.address),
                   .name = function.name,
                   .binding = {},
                   .is_bound = 1,
                   .kind = CallKind::kFollowed,
                   .is_ready = 0,
                   .values = static_cast<uint16_t>(function.values),
                   .filter = static_cast<uint16_t>(function.flags_at_start),
                   .filter_at_start = static_cast<uint16_t>(function.flags_at_start),
                   .round = 0};
  return stub_address(number);
}

bool returns_to_stub(uintptr_t address) {
  if constexpr (machine::kExchangesReturns) {
    if (address == reinterpret_cast<uintptr_t>(arctrace_exchanged_returns)) return true;
  }
  return address == reinterpret_cast<uintptr_t>(arctrace_call_returns);
}

void library_modules_changed() {
  if (chosen != LibraryCalls::kAll) return;
  for (uint32_t i = 0; i < modules_used; ++i) modules[i].seen = false;
  dl_iterate_phdr(see_module, nullptr);
  for (uint32_t i = 0; i < modules_used; ++i) {
    if (modules[i].seen || modules[i].range.high == 0) continue;
    release_stubs(modules[i].range);
    if constexpr (machine::kPltReadsDataSlots) modules[i].cells.release();
    modules[i].range = {};
  }
}

void name_all_library_calls() {
  for (uint32_t i = 0; i < calls_used; ++i) {
    if (calls[i].slot != nullptr && calls[i].key == 0) name_call(calls[i]);
  }
}

}  // namespace arctrace::shim

using namespace arctrace;
using namespace arctrace::shim;

extern "C" arctrace_call_route arctrace_call_begins(uint32_t number, uintptr_t* place,
                                                    uintptr_t frame_pointer) {
  LibraryCall& call = calls[number];
  if (__builtin_expect(IpcAtomics::load_acquire(call.is_ready) == 0 ||
                           live_round() != IpcAtomics::load_relaxed(call.round),
                       0)) {
    return begin_unready_call(call, place, frame_pointer);
  }
  const uintptr_t target = IpcAtomics::load_relaxed(call.target);
  return {target, static_cast<uintptr_t>(
                      arctrace_shim_call_begin(IpcAtomics::load_relaxed(call.key), place,
                                               frame_pointer, flags_of(call, *place)))};
}
