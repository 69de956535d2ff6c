// Writes the jumps of sleds. For each module a page or more of gated jumps is mapped
// within reach of its code, and the landings of its sleds at a distance from them. The
// module's code is writable only while the jumps are written, or they are written past
// its protection.
#include <arctrace/format.h>
#include <link.h>
#include <sys/mman.h>

#include <cstddef>

#include "src/api/shim_interface.h"
#include "src/base/large_table.hpp"
#include "src/base/memory.hpp"
#include "src/base/raw_syscall.hpp"
#include "src/base/shared_atomics.hpp"
#include "writer_shim/arch/code_changes.hpp"
#include "writer_shim/arch/machine.hpp"
#include "writer_shim/base/mappings.hpp"
#include "writer_shim/elf/elf_sections.hpp"
#include "writer_shim/elf/module_slots.hpp"
#include "writer_shim/filter/function_filter.hpp"
#include "writer_shim/functions/find_sleds.hpp"
#include "writer_shim/functions/function_hooks.hpp"
#include "writer_shim/plt/call_table.hpp"
#include "writer_shim/plt/library_hooks.hpp"

namespace arctrace::shim {
namespace {

// The memory that is mapped for a module: a page that stays writable, and code.
struct GatedJumps {
  uint64_t gate;  // the gate's address; it stays mapped, and closed, between sessions
  uint64_t filler[511];
  ReturnJump returns;
  uint64_t more_filler;
  GatedJump jumps[1];
};
constexpr size_t kGatePage = offsetof(GatedJumps, returns);
static_assert(kGatePage == 4096);

// The memory of the modules that are loaded.
struct NotedJumps {
  GatedJumps* jumps;  // null: a free entry
  uintptr_t code;     // of the module
  size_t count;
};
ARCTRACE_LARGE_TABLE constinit NotedJumps noted_jumps[kModulesMax]{};
size_t noted_jumps_used;

void note_gated_jumps(GatedJumps* jumps, uintptr_t code, size_t count) {
  size_t at = 0;
  while (at < noted_jumps_used && noted_jumps[at].jumps != nullptr) ++at;
  if (at == kModulesMax) return;
  if (at == noted_jumps_used) ++noted_jumps_used;
  noted_jumps[at] = {jumps, code, count};
}

void lead_to_gate(GatedJumps& jumps) {
  IpcAtomics::store_relaxed(
      jumps.gate, static_cast<uint64_t>(reinterpret_cast<uintptr_t>(arctrace_gate)));
}

// Releases the memory of a module that is gone.
void release_gated_jumps(const AddressRange& module) {
  for (size_t i = 0; i < noted_jumps_used; ++i) {
    if (module.contains(noted_jumps[i].code)) noted_jumps[i].jumps = nullptr;
  }
  release_jump_memory(module);
}

// Maps memory at `wanted`. False: other memory is mapped there.
bool map_at(uintptr_t wanted, size_t size) {
  const long result = raw_syscall(
      SYS_mmap, static_cast<long>(wanted), static_cast<long>(size),
      PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (result == static_cast<long>(wanted)) return true;
  if (result > 0) raw_syscall(SYS_munmap, result, static_cast<long>(size));
  return false;
}

// Maps memory below the module; null: there is none within reach.
GatedJumps* map_near(const ModuleImage& image, size_t size) {
  constexpr uintptr_t kStep = uintptr_t{1} << 16;
  constexpr uintptr_t kTries = machine::kJumpReach / kStep / 2;
  const uintptr_t base = (image.range.low & ~(kStep - 1)) - (size & ~(kStep - 1));
  for (uintptr_t i = 1; i <= kTries && base > (i + 1) * kStep; ++i) {
    const uintptr_t wanted = base - i * kStep;
    if (map_at(wanted, size)) return reinterpret_cast<GatedJumps*>(wanted);
  }
  return nullptr;
}

// The memory of a module's landings, at a distance from its code.
struct Landings {
  intptr_t distance;  // 0: there are none
  uintptr_t low;
  size_t size;
};

// Maps landings for a module whose sleds are like this one.
Landings map_landings(const ModuleImage& image, const Sled& sled) {
  constexpr uintptr_t kPage = 4096;
  intptr_t distance = 0;
  for (size_t i = 0; find_landing_distance(sled, i, distance); ++i) {
    const auto code_low = static_cast<intptr_t>(image.code.low);
    if (distance < 0 && -distance >= code_low) continue;
    const uintptr_t low =
        (image.code.low + static_cast<uintptr_t>(distance)) & ~(kPage - 1);
    const uintptr_t high =
        image.code.high + static_cast<uintptr_t>(distance) + kLandingSize;
    const size_t size = (high - low + kPage - 1) & ~(kPage - 1);
    if (map_at(low, size)) return {distance, low, size};
  }
  return {};
}

// The target of a jump's code, by the number of the function's stub.
void set_target(GatedJump& jump, uint32_t number, Exits exits) {
  if constexpr (machine::kSledsLoadCalls) {
    jump.stub = reinterpret_cast<uintptr_t>(
        exits == Exits::kExitHooked ? arctrace_exit_hooked_entry : arctrace_call_begun);
    jump.call = reinterpret_cast<uintptr_t>(&library_calls[number]);
  } else {
    jump.stub = stub_address(number);
  }
}

bool is_hidden(const Sled& sled) {
  return (known_function(sled.function).flags_at_start & ARCTRACE_SHIM_HIDDEN) != 0;
}

// `exits`: how those of the function can be seen. False: no stub is free, or the jump is
// too far away.
bool patch(const Sled& sled, Exits exits, const GatedJumps& head,
           const Landings& landings, GatedJump& jump) {
  const KnownFunction function = known_function(sled.function);
  if (!may_report_exit(function)) exits = Exits::kThrough;
  if (!make_jump(jump, reinterpret_cast<uintptr_t>(&head.gate), sled)) {
    return false;
  }
  const uint32_t number = stub_for_function(function, continue_address(jump, sled));
  if (number == kNoStub) return false;
  set_target(jump, number, exits);
  return lead_to_jump(sled, jump, landings.distance);
}

void note_sled(GatedJump& jump, const Sled& sled) {
  jump.sled = reinterpret_cast<uintptr_t>(sled.begin);
  copy_bytes(&jump.written, sled.begin, sizeof jump.written);
}

// Whether the sled is no longer as it was written: the kernel has written a breakpoint
// over it, or the file's byte when a uprobe was removed.
bool is_overwritten(const GatedJump& jump) {
  return jump.sled != 0 && __builtin_memcmp(reinterpret_cast<const void*>(jump.sled),
                                            &jump.written, sizeof jump.written) != 0;
}

// The code of a module that is to be patched: for_each(visit) calls visit(sled) for each
// of its functions, exits_of(sled) says how a function's exits can be seen, and
// lead_exits(head) changes them at the end, while the module's code is writable. `kind`:
// how exit-hooked functions are hooked.
template <class ForEach, class ExitsOf, class LeadExits>
void patch_module(const ModuleImage& image, arctrace_hook_kind kind,
                  const ForEach& for_each, const ExitsOf& exits_of,
                  const LeadExits& lead_exits) {
  size_t count = 0;
  Sled lands{};  // the first sled with a landing, if any has one
  for_each([&](const Sled& sled) {
    if (is_hidden(sled)) return;
    intptr_t distance = 0;
    ++count;
    if (lands.function == 0 && find_landing_distance(sled, 0, distance)) lands = sled;
  });
  const size_t size =
      (sizeof(GatedJumps) + count * sizeof(GatedJump) + 4095) & ~size_t{4095};
  const size_t code_size = image.code.high - image.code.low;
  if (count == 0 || !can_make_executable()) return;
  const bool is_written = !notes_changes();
  const bool is_writable = is_written && protect(image.code.low, code_size,
                                                 PROT_READ | PROT_WRITE | PROT_EXEC);
  const ForcedChanges forced(is_written && !is_writable);
  if (is_written && !is_writable && !forced) return;
  GatedJumps* near = map_near(image, size);
  if (near == nullptr) {
    if (is_writable) protect(image.code.low, code_size, PROT_READ | PROT_EXEC);
    return;
  }
  const Landings landings = lands.function == 0 ? Landings{} : map_landings(image, lands);
  note_jump_memory(image.code.low, reinterpret_cast<uintptr_t>(near), size);
  if (landings.distance != 0)
    note_jump_memory(image.code.low, landings.low, landings.size);
  note_gated_jumps(near, image.code.low, count);
  lead_to_gate(*near);
  if constexpr (machine::kHasExitHooks) {
    make_return_jump(near->returns,
                     reinterpret_cast<uintptr_t>(&arctrace_shim_function_return));
  }
  GatedJump* next = near->jumps;
  uintptr_t reporting = 0;  // an exit-hooked function
  for_each([&](const Sled& sled) {
    const bool is_watched = is_written && !outlasts_probes(sled);
    if (next < near->jumps + count && !is_hidden(sled) &&
        patch(sled, exits_of(sled), *near, landings, *next)) {
      // It is not known whether noted changes will be made.
      if (is_watched) note_sled(*next, sled);
      ++next;
      if (reporting == 0 && is_exit_hooked(sled.function)) reporting = sled.function;
    }
  });
  lead_exits(*near);
  finish_code(reinterpret_cast<uintptr_t>(near), size);
  make_executable(reinterpret_cast<uintptr_t>(near) + kGatePage, size - kGatePage);
  if (landings.distance != 0) make_executable(landings.low, landings.size);
  if (!is_written) return;
  finish_code(image.code.low, code_size);
  if (is_writable) protect(image.code.low, code_size, PROT_READ | PROT_EXEC);
  if (reporting != 0) arctrace_shim_hooked(kind, reporting);
}

// The memory of a section that is mapped with the module; empty: there is none.
AddressRange find_mapped(const ModuleImage& image, const ElfSections& sections,
                         const char* name) {
  const ElfW(Shdr)* found = sections.find(name);
  if (found == nullptr || (found->sh_flags & SHF_ALLOC) == 0) return {};
  const uintptr_t low = image.bias + found->sh_addr;
  const uintptr_t size = found->sh_size;
  if (!image.range.contains(low) || size > image.range.high - low) return {};
  return {low, low + size};
}

constexpr auto kNoExitsChange = [](const GatedJumps&) {};

// `section`: the addresses of NOP areas, as the compiler noted them.
void patch_patchable_entries(const ModuleImage& image, const AddressRange& section,
                             FunctionSymbols& symbols) {
  const auto* addresses = reinterpret_cast<const uintptr_t*>(section.low);
  const size_t count = (section.high - section.low) / sizeof *addresses;
  patch_module(
      image, ARCTRACE_HOOK_FUNCTION,
      [&](const auto& visit) {
        for (size_t i = 0; i < count; ++i) {
          const Sled sled = find_sled(addresses[i], image.code, symbols);
          if (sled.function != 0) visit(sled);
        }
      },
      [](const Sled&) { return Exits::kThrough; }, kNoExitsChange);
}

void patch_xray_sleds(const ModuleImage& image, const AddressRange& section) {
  XrayMap map(image, section);
  // It is not known whether noted changes will be made, and several changes of one
  // function would have to be made together: so each function gets one change only.
  const bool reports = !notes_changes();
  patch_module(
      image, ARCTRACE_HOOK_XRAY, [&](const auto& visit) { map.for_each_entry(visit); },
      [&](const Sled& sled) { return reports ? map.exits_of(sled) : Exits::kThrough; },
      [&](const GatedJumps& head) {
        if (!reports) return;
        map.for_each_hooked_exit(
            [&](unsigned char* exit) { lead_to_return_jump(exit, head.returns); });
      });
}

// Whether the return hook that the modules' functions call is ours.
bool has_own_return_hook() {
  if constexpr (machine::kHasExitHooks) {
    return is_own_function(reinterpret_cast<uintptr_t>(&__return__));
  } else {
    return false;
  }
}

void patch_entry_calls(const ModuleImage& image) {
  const uintptr_t slot = find_entry_call_slot(image);
  if (slot == 0) return;
  ReturnCalls returns(image);
  const bool may_report = has_own_return_hook();
  patch_module(
      image, ARCTRACE_HOOK_RETURN,
      [&](const auto& visit) {
        Sled call = next_entry_call(image, slot, image.code.low);
        for (; call.function != 0; call = next_entry_call(image, slot, call.end)) {
          visit(call);
        }
      },
      [&](const Sled& sled) {
        return may_report && returns.are_in(sled) ? Exits::kExitHooked : Exits::kThrough;
      },
      kNoExitsChange);
}

// A module that was checked.
struct SeenModule {
  AddressRange range;  // empty: a free entry
  bool seen;
};
constexpr size_t kFirstSeen = 8;
ARCTRACE_LARGE_TABLE constinit SeenModule other_seen_modules[kModulesMax - kFirstSeen]{};
constinit SplitTable<other_seen_modules, kFirstSeen> seen_modules{};
size_t modules_used;

SeenModule* find_seen(uintptr_t low) {
  for (size_t i = 0; i < modules_used; ++i) {
    if (seen_modules[i].range.high != 0 && seen_modules[i].range.low == low) {
      return &seen_modules[i];
    }
  }
  return nullptr;
}

void note_seen(const ModuleImage& image) {
  size_t free = 0;
  while (free < modules_used && seen_modules[free].range.high != 0) ++free;
  if (free == kModulesMax) return;
  if (free == modules_used) ++modules_used;
  seen_modules[free] = {image.range, true};
}

// Whether functions of the module may begin with a sled that is to be patched. Functions
// with the hooks of -finstrument-functions are recorded by these.
bool may_have_sleds(const dl_phdr_info& info, ModuleImage& image) {
  return !ModuleFile::is_of_system(info) && read_module(info, image) &&
         !ModuleFile::is_own(info, image) && image.code.low != image.code.high &&
         !image.imports("__cyg_profile_func_enter");
}

enum class NewModules : uint8_t { kPatched, kAwaited, kSkipped };

struct Visit {
  bool is_first;  // the program is the first module
  NewModules what;
  bool also_seen;  // modules that were checked before are patched as well
};

int visit(dl_phdr_info* info, size_t, void* data) {
  Visit& visit = *static_cast<Visit*>(data);
  const bool is_program = visit.is_first;
  visit.is_first = false;
  ModuleImage image;
  if (!may_have_sleds(*info, image)) return 0;
  if (SeenModule* known = find_seen(image.range.low); known != nullptr) {
    known->seen = true;
    if (!visit.also_seen) return 0;
  }
  const ModuleFile file(*info, is_program);
  if (file.descriptor() < 0) return 0;
  const ElfSections sections(file.descriptor());
  const AddressRange entries = find_mapped(image, sections, kPatchableSection);
  const AddressRange sleds = find_mapped(image, sections, kXraySection);
  const bool has_any =
      entries.high != 0 || sleds.high != 0 || find_entry_call_slot(image) != 0;
  if (visit.what == NewModules::kAwaited && has_any) {
    await_initialization(image);
    return 0;
  }
  if (find_seen(image.range.low) == nullptr) note_seen(image);
  if (!has_any || visit.what == NewModules::kSkipped) return 0;
  // Hooks that functions call are recorded without a change of code, too.
  if (!notes_changes()) patch_entry_calls(image);
  FunctionSymbols symbols(image, sections, file.descriptor());
  patch_patchable_entries(image, entries, symbols);
  patch_xray_sleds(image, sleds);
  return 0;
}

}  // namespace

void report_overwritten_sleds() {
  constexpr uint32_t kListedMax = 64;
  uint64_t listed[kListedMax];
  for (size_t i = 0; i < noted_jumps_used; ++i) {
    const NotedJumps& module = noted_jumps[i];
    uint32_t count = 0;
    const auto report = [&] {
      if (count != 0)
        arctrace_shim_patches(ARCTRACE_PATCH_OVERWRITTEN, count, listed, count);
      count = 0;
    };
    for (size_t k = 0; module.jumps != nullptr && k < module.count; ++k) {
      const GatedJump& jump = module.jumps->jumps[k];
      if (!is_overwritten(jump)) continue;
      listed[count++] = jump.sled;
      if (count == kListedMax) report();
    }
    report();
  }
}

void patch_functions() {
  Visit all{true, NewModules::kPatched, false};
  dl_iterate_phdr(visit, &all);
}

void note_function_changes() {
  const NotedChanges noted;
  Visit all{true, NewModules::kPatched, true};
  dl_iterate_phdr(visit, &all);
}

void lead_jumps_to_gate() {
  for (size_t i = 0; i < noted_jumps_used; ++i) {
    if (noted_jumps[i].jumps != nullptr) lead_to_gate(*noted_jumps[i].jumps);
  }
}

void sled_modules_changed(bool are_unrelocated) {
  for (size_t i = 0; i < modules_used; ++i) seen_modules[i].seen = false;
  Visit all{true, are_unrelocated ? NewModules::kAwaited : NewModules::kSkipped, false};
  dl_iterate_phdr(visit, &all);
  for (size_t i = 0; i < modules_used; ++i) {
    SeenModule& module = seen_modules[i];
    if (module.seen || module.range.high == 0) continue;
    forget_changes(module.range);
    free_stubs(module.range);
    release_gated_jumps(module.range);
    module.range = {};
  }
}

}  // namespace arctrace::shim
