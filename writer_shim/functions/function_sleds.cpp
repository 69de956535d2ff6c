// For each module a page or more of gated jumps is mapped within reach of its code, and
// the landings of its sleds at a distance from them, filled in, and led to; the module's
// code is writable only meanwhile.
#include "writer_shim/functions/function_sleds.hpp"

#include <link.h>
#include <sys/mman.h>

#include <cstddef>

#include "src/api/shim_interface.h"
#include "src/base/raw_syscall.hpp"
#include "writer_shim/arch/jump_memory.hpp"
#include "writer_shim/arch/machine.hpp"
#include "writer_shim/arch/sleds.hpp"
#include "writer_shim/base/page_protection.hpp"
#include "writer_shim/elf/elf_sections.hpp"
#include "writer_shim/elf/module_slots.hpp"
#include "writer_shim/filter/function_filter.hpp"
#include "writer_shim/functions/reported_calls.hpp"
#include "writer_shim/functions/xray_map.hpp"
#include "writer_shim/plt/call_table.hpp"
#include "writer_shim/plt/library_hooks.hpp"

namespace arctrace::shim {
namespace {

// The memory that is mapped for a module.
struct GatedJumps {
  const volatile uint32_t* gate;  // it stays mapped, and closed, when the session is left
  ReturnJump returns;
  uint64_t filler;
  GatedJump jumps[1];
};

// Maps memory at `wanted`. False: there is something already.
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

// Where the code of a jump leads to, by the number of the function's stub.
void set_target(GatedJump& jump, uint32_t number, Exits exits) {
  if constexpr (machine::kHasReportedExits) {
    if (exits == Exits::kReported) {
      jump.stub = reinterpret_cast<uintptr_t>(arctrace_reported_entry);
      jump.call = reinterpret_cast<uintptr_t>(&library_calls[number]);
      return;
    }
  }
  jump.stub = stub_address(number);
}

// `exits`: how those of the function can be seen. False: there is no stub left, or the
// jump is too far away.
bool patch(const Sled& sled, Exits exits, const GatedJumps& head,
           const Landings& landings, GatedJump& jump) {
  const KnownFunction function = known_function(sled.function);
  if ((function.flags_at_start & ARCTRACE_SHIM_HIDDEN) != 0) return false;
  if (!may_report_exit(function)) exits = Exits::kThrough;
  if (!make_jump(jump, reinterpret_cast<uintptr_t>(&head.gate), sled, exits)) {
    return false;
  }
  const uint32_t number = stub_for_function(function, continue_address(jump, sled));
  if (number == kNoStub) return false;
  set_target(jump, number, exits);
  return lead_to_jump(sled, jump, landings.distance);
}

// The code of a module that is to be patched: for_each(visit) calls visit(sled) for each
// of its functions, exits_of(sled) says how a function's exits can be seen, and
// lead_exits(head) changes them at the end, while the module's code is writable.
template <class ForEach, class ExitsOf, class LeadExits>
void patch_module(const ModuleImage& image, const ForEach& for_each,
                  const ExitsOf& exits_of, const LeadExits& lead_exits) {
  size_t count = 0;
  Sled lands{};  // the first one with a landing, if any has one
  for_each([&](const Sled& sled) {
    intptr_t distance = 0;
    ++count;
    if (lands.function == 0 && find_landing_distance(sled, 0, distance)) lands = sled;
  });
  const size_t size =
      (sizeof(GatedJumps) + count * sizeof(GatedJump) + 4095) & ~size_t{4095};
  const size_t code_size = image.code.high - image.code.low;
  GatedJumps* near = count == 0 ? nullptr : map_near(image, size);
  if (near == nullptr ||
      !protect(image.code.low, code_size, PROT_READ | PROT_WRITE | PROT_EXEC)) {
    return;
  }
  const Landings landings = lands.function == 0 ? Landings{} : map_landings(image, lands);
  note_jump_memory(image.code.low, reinterpret_cast<uintptr_t>(near), size);
  if (landings.distance != 0)
    note_jump_memory(image.code.low, landings.low, landings.size);
  near->gate = arctrace_gate;
  if constexpr (machine::kHasReportedExits) {
    make_return_jump(near->returns,
                     reinterpret_cast<uintptr_t>(&arctrace_shim_function_return));
  }
  GatedJump* next = near->jumps;
  for_each([&](const Sled& sled) {
    if (next < near->jumps + count &&
        patch(sled, exits_of(sled), *near, landings, *next)) {
      ++next;
    }
  });
  lead_exits(*near);
  finish_code(reinterpret_cast<uintptr_t>(near), size);
  finish_code(image.code.low, code_size);
  protect(reinterpret_cast<uintptr_t>(near), size, PROT_READ | PROT_EXEC);
  if (landings.distance != 0) protect(landings.low, landings.size, PROT_READ | PROT_EXEC);
  protect(image.code.low, code_size, PROT_READ | PROT_EXEC);
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

// `section`: the addresses of rooms, as the compiler noted them.
void patch_rooms(const ModuleImage& image, const AddressRange& section,
                 FunctionSymbols& symbols) {
  const auto* addresses = reinterpret_cast<const uintptr_t*>(section.low);
  const size_t count = (section.high - section.low) / sizeof *addresses;
  patch_module(
      image,
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
  patch_module(
      image, [&](const auto& visit) { map.for_each_entry(visit); },
      [&](const Sled& sled) { return map.exits_of(sled); },
      [&](const GatedJumps& head) {
        map.for_each_reported_exit(
            [&](unsigned char* exit) { lead_to_return_jump(exit, head.returns); });
      });
}

// Whether the return hook that the modules' functions call is ours.
bool has_own_return_hook() {
  if constexpr (machine::kHasReportedExits) {
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
      image,
      [&](const auto& visit) {
        Sled call = next_entry_call(image, slot, image.code.low);
        for (; call.function != 0; call = next_entry_call(image, slot, call.end)) {
          visit(call);
        }
      },
      [&](const Sled& sled) {
        return may_report && returns.are_in(sled) ? Exits::kReported : Exits::kThrough;
      },
      kNoExitsChange);
}

// Modules that were looked at.
struct SeenModule {
  AddressRange range;  // empty: a free entry
  bool seen;
};
constinit SeenModule seen_modules[kModulesMax]{};
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

// Whether functions of the module may begin with a sled that is to be patched. Those with
// the hooks of -finstrument-functions are recorded by these.
bool may_have_sleds(const dl_phdr_info& info, ModuleImage& image) {
  return !ModuleFile::is_of_system(info) && read_module(info, image) &&
         image.code.low != image.code.high && !image.imports("__cyg_profile_func_enter");
}

enum class NewModules : uint8_t { kPatched, kAwaited, kSkipped };

struct Visit {
  bool is_first;  // the program is the first module
  NewModules what;
};

int visit(dl_phdr_info* info, size_t, void* data) {
  Visit& visit = *static_cast<Visit*>(data);
  const bool is_program = visit.is_first;
  visit.is_first = false;
  ModuleImage image;
  if (!may_have_sleds(*info, image)) return 0;
  if (SeenModule* known = find_seen(image.range.low); known != nullptr) {
    known->seen = true;
    return 0;
  }
  const ModuleFile file(*info, is_program);
  if (file.descriptor() < 0) return 0;
  const ElfSections sections(file.descriptor());
  const AddressRange rooms = find_mapped(image, sections, kPatchableSection);
  const AddressRange sleds = find_mapped(image, sections, kXraySection);
  const bool has_any =
      rooms.high != 0 || sleds.high != 0 || find_entry_call_slot(image) != 0;
  if (visit.what == NewModules::kAwaited && has_any) {
    await_initialization(image);
    return 0;
  }
  note_seen(image);
  if (!has_any || visit.what == NewModules::kSkipped) return 0;
  patch_entry_calls(image);
  FunctionSymbols symbols(image, sections, file.descriptor());
  patch_rooms(image, rooms, symbols);
  patch_xray_sleds(image, sleds);
  return 0;
}

}  // namespace

void patch_functions() {
  Visit all{true, NewModules::kPatched};
  dl_iterate_phdr(visit, &all);
}

void sled_modules_changed(bool are_unrelocated) {
  for (size_t i = 0; i < modules_used; ++i) seen_modules[i].seen = false;
  Visit all{true, are_unrelocated ? NewModules::kAwaited : NewModules::kSkipped};
  dl_iterate_phdr(visit, &all);
  for (size_t i = 0; i < modules_used; ++i) {
    SeenModule& module = seen_modules[i];
    if (module.seen || module.range.high == 0) continue;
    free_stubs(module.range);
    release_jump_memory(module.range);
    module.range = {};
  }
}

}  // namespace arctrace::shim
