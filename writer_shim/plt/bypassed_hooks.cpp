// Finds slots that are bound past the shim. A module's first slot with the name of a
// function of the shim shows how all of its slots are bound. If other modules than libc
// and the shim have such a function, these come before both.
#include <elf.h>

#include "src/base/shared_atomics.hpp"
#include "writer_shim/arch/loader_calls.hpp"
#include "writer_shim/arch/machine.hpp"
#include "writer_shim/elf/symbol_search.hpp"
#include "writer_shim/plt/library_hooks.hpp"

namespace arctrace::shim {
namespace {

// The function that calls through a slot of the procedure linkage table reach, which the
// loader looks up if it has not yet; 0: it is not known.
uintptr_t bound_function(const ModuleImage& image, size_t index) {
  const uint64_t value =
      IpcAtomics::load_relaxed(*image.slot_of(image.jump_slots[index]));
  bool is_known = false;
  const LazyBinding binding = find_lazy_binding(image, index, value, is_known);
  if (!is_known) return 0;
  return binding.is_needed() ? bind_lazily(binding) : static_cast<uintptr_t>(value);
}

uintptr_t bound_function(const ModuleImage& image, const ElfW(Rela) & relocation) {
  return static_cast<uintptr_t>(IpcAtomics::load_relaxed(*image.slot_of(relocation)));
}

// Whether the function `name` is that of the library that has it after the shim.
bool is_after_shim(uintptr_t function, const char* name) {
  const uintptr_t next = find_function(name, SearchFrom::kNext);
  return function != 0 && next != 0 &&
         file_of_function(next, name).module.contains(function);
}

enum class Bound : uint8_t { kUnknown, kToShim, kPastShim };

template <class Slot>
Bound bound(const ModuleImage& image, const ElfW(Rela) & relocation, const Slot& slot) {
  if (!image.is_of_another(relocation)) return Bound::kUnknown;
  const char* name = image.name_of(relocation);
  const uintptr_t own = own_function(name);
  if (own == 0) return Bound::kUnknown;
  if (is_late()) return Bound::kPastShim;
  const uintptr_t function = bound_function(image, slot);
  if (function == own) return Bound::kToShim;
  return is_after_shim(function, name) ? Bound::kPastShim : Bound::kUnknown;
}

template <class Slot>
void bind_to_shim(const ModuleImage& image, const ElfW(Rela) & relocation,
                  const Slot& slot) {
  const char* name = image.name_of(relocation);
  const uintptr_t own = own_function(name);
  if (own == 0 || (!is_late() && !is_after_shim(bound_function(image, slot), name))) {
    return;
  }
  IpcAtomics::store_release(*image.slot_of(relocation), uint64_t{own});
}

}  // namespace

bool is_bound_past_shim(const ModuleImage& image, Relocated when) {
  // For all modules with which the program starts, the loader has searched the shim
  // first.
  if (when == Relocated::kAtStart && !is_late()) return false;
  for (size_t i = 0; i < image.jump_slot_count; ++i) {
    if (ELF64_R_TYPE(image.jump_slots[i].r_info) != machine::kJumpSlot) continue;
    const Bound found = bound(image, image.jump_slots[i], i);
    if (found != Bound::kUnknown) return found == Bound::kPastShim;
  }
  for (size_t i = 0; i < image.relocation_count; ++i) {
    const ElfW(Rela)& relocation = image.relocations[i];
    if (ELF64_R_TYPE(relocation.r_info) != machine::kDataSlot) continue;
    const Bound found = bound(image, relocation, relocation);
    if (found != Bound::kUnknown) return found == Bound::kPastShim;
  }
  return false;
}

void bind_jump_slot_to_shim(const ModuleImage& image, size_t index) {
  bind_to_shim(image, image.jump_slots[index], index);
}

void bind_data_slot_to_shim(const ModuleImage& image, const ElfW(Rela) & relocation) {
  bind_to_shim(image, relocation, relocation);
}

}  // namespace arctrace::shim
