#include "writer_shim/function_sleds.hpp"

#include <link.h>
#include <sys/mman.h>

#include "src/raw_syscall.hpp"
#include "src/shim_interface.h"
#include "writer_shim/elf_sections.hpp"
#include "writer_shim/frame_rule.hpp"
#include "writer_shim/function_choice.hpp"
#include "writer_shim/library_hooks.hpp"
#include "writer_shim/module_slots.hpp"
#include "writer_shim/page_protection.hpp"
#include "writer_shim/x86_64/fentry_calls.hpp"
#include "writer_shim/x86_64/instructions.hpp"

namespace arctrace::shim {
namespace {

// Where the room of a function jumps to, near the module's code: a jump in five bytes
// reaches no further than 2 GiB. It asks the gate itself, so that a function costs next
// to nothing more while functions are switched off.
struct GatedJump {
  unsigned char code[24];
  uint64_t stub;
};

// Instructions whose last four bytes say how far it is from their ends; where these are.
constexpr size_t kGateLoaded = 7, kGoesOn = 17;
constexpr char kGatedJump[sizeof GatedJump::code + 1] =
    "\x4c\x8b\x1d\0\0\0\0"     // mov gate(%rip), %r11
    "\x41\xf6\x03\x01"         // testb $ARCTRACE_GATE_FUNCTIONS, (%r11)
    "\x0f\x84\0\0\0\0"         // je function
    "\xff\x25\x01\0\0\0\xcc";  // jmp *stub(%rip)
static_assert(ARCTRACE_GATE_FUNCTIONS == 1);

// What is mapped for a module.
struct GatedJumps {
  const volatile uint32_t* gate;  // stays mapped, and closed, when the session is left
  uint64_t filler[3];
  GatedJump jumps[1];
};

// Has the instruction that ends at `end` reach `to`. False: it is too far away.
bool set_distance(unsigned char* end, uintptr_t to) {
  const auto wanted = static_cast<int64_t>(to - reinterpret_cast<uintptr_t>(end));
  const auto distance = static_cast<int32_t>(wanted);
  if (distance != wanted) return false;
  __builtin_memcpy(end - sizeof distance, &distance, sizeof distance);
  return true;
}

// A function with room, or with a call of __fentry__ in its place.
struct Sled {
  uintptr_t function;  // 0: it has too little
  unsigned char* begin;
  uintptr_t end;  // where the function goes on
};

// `at`: the first NOP, as the compiler noted it. Some may stand before the function.
Sled find_sled(uintptr_t at, const AddressRange& code) {
  if (!code.contains(at)) return {};
  const auto* bytes = reinterpret_cast<const unsigned char*>(at);
  const auto* limit = reinterpret_cast<const unsigned char*>(code.high);
  uintptr_t function = 0;
  const unsigned char* begin = nullptr;
  const unsigned char* end = bytes;
  while (end < limit) {
    const auto place = reinterpret_cast<uintptr_t>(end);
    if (begin == nullptr) {
      function = find_frame_rule(place).function;
      const bool is_here = function == place || function + sizeof kEndbr64 == place;
      if (is_here) begin = end;
    }
    if (begin == end && limit - end > 4 &&
        __builtin_memcmp(end, kEndbr64, sizeof kEndbr64) == 0) {
      end += sizeof kEndbr64;
      begin = end;
      continue;
    }
    const size_t length = filler_length(end, limit);
    if (length == 0 || *end == kBreakpoint) break;
    end += length;
  }
  if (begin == nullptr || end - begin < static_cast<long>(kJumpSize)) return {};
  return {function, const_cast<unsigned char*>(begin), reinterpret_cast<uintptr_t>(end)};
}

// Memory below the module.
GatedJumps* map_near(const ModuleImage& image, size_t size) {
  constexpr uintptr_t kStep = uintptr_t{1} << 16;
  constexpr uintptr_t kTries = 4096;
  const uintptr_t base = (image.range.low & ~(kStep - 1)) - (size & ~(kStep - 1));
  for (uintptr_t i = 1; i <= kTries && base > (i + 1) * kStep; ++i) {
    const uintptr_t wanted = base - i * kStep;
    const long result = raw_syscall(
        SYS_mmap, static_cast<long>(wanted), static_cast<long>(size),
        PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (result == static_cast<long>(wanted)) return reinterpret_cast<GatedJumps*>(wanted);
    if (result > 0) raw_syscall(SYS_munmap, result, static_cast<long>(size));
  }
  return nullptr;
}

// False: there is no stub left, or it is too far away.
bool patch(const Sled& sled, const GatedJumps& head, GatedJump& jump) {
  const KnownFunction function = known_function(sled.function);
  if ((function.flags_at_start & ARCTRACE_SHIM_HIDDEN) != 0) return false;
  __builtin_memcpy(jump.code, kGatedJump, sizeof jump.code);
  if (!set_distance(jump.code + kGateLoaded, reinterpret_cast<uintptr_t>(&head.gate)) ||
      !set_distance(jump.code + kGoesOn, sled.end)) {
    return false;
  }
  jump.stub = stub_for_function(function, sled.end);
  if (jump.stub == 0) return false;
  if (!set_distance(sled.begin + kJumpSize, reinterpret_cast<uintptr_t>(&jump))) {
    return false;
  }
  sled.begin[0] = kJump;
  return true;
}

// `for_each(visit)` calls visit(sled) for each function of the module.
template <class ForEach>
void patch_module(const ModuleImage& image, const ForEach& for_each) {
  size_t count = 0;
  for_each([&](const Sled&) { ++count; });
  const size_t size =
      (sizeof(GatedJumps) + count * sizeof(GatedJump) + 4095) & ~size_t{4095};
  const size_t code_size = image.code.high - image.code.low;
  GatedJumps* near = count == 0 ? nullptr : map_near(image, size);
  if (near == nullptr ||
      !protect(image.code.low, code_size, PROT_READ | PROT_WRITE | PROT_EXEC)) {
    return;
  }
  near->gate = arctrace_gate;
  GatedJump* next = near->jumps;
  for_each([&](const Sled& sled) {
    if (next < near->jumps + count && patch(sled, *near, *next)) ++next;
  });
  // Complete, before anything runs in it.
  protect(reinterpret_cast<uintptr_t>(near), size, PROT_READ | PROT_EXEC);
  protect(image.code.low, code_size, PROT_READ | PROT_EXEC);
}

void patch_rooms(const ModuleImage& image, const ElfW(Shdr) & places) {
  const uintptr_t low = image.bias + places.sh_addr;
  const uintptr_t size = places.sh_size;
  if (!image.range.contains(low) || size > image.range.high - low) return;
  const auto* place = reinterpret_cast<const uintptr_t*>(low);
  patch_module(image, [&](const auto& visit) {
    for (size_t i = 0; i < size / sizeof *place; ++i) {
      const Sled sled = find_sled(place[i], image.code);
      if (sled.function != 0) visit(sled);
    }
  });
}

void patch_fentry_calls(const ModuleImage& image) {
  const uintptr_t slot = find_fentry_slot(image);
  if (slot == 0) return;
  patch_module(image, [&](const auto& visit) {
    FentryCall call = next_fentry_call(image, slot, image.code.low);
    while (call.function != 0) {
      const uintptr_t end = call.end;
      visit({call.function, reinterpret_cast<unsigned char*>(call.begin), end});
      call = next_fentry_call(image, slot, end);
    }
  });
}

int visit(dl_phdr_info* info, size_t, void* is_first) {
  const bool is_program = *static_cast<bool*>(is_first);
  *static_cast<bool*>(is_first) = false;
  ModuleImage image;
  if (ModuleFile::is_of_system(*info) || !read_module(*info, image) ||
      image.code.low == image.code.high) {
    return 0;
  }
  patch_fentry_calls(image);
  const ModuleFile file(*info, is_program);
  if (file.descriptor() < 0) return 0;
  const ElfSections sections(file.descriptor());
  const ElfW(Shdr)* found = sections.find(kPatchableSection);
  if (found != nullptr && (found->sh_flags & SHF_ALLOC) != 0) patch_rooms(image, *found);
  return 0;
}

}  // namespace

void patch_functions() {
  bool is_first = true;
  dl_iterate_phdr(visit, &is_first);
}

}  // namespace arctrace::shim
