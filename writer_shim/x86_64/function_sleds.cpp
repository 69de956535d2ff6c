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
#include "writer_shim/x86_64/instructions.hpp"

namespace arctrace::shim {
namespace {

// Near a module's code, since a jump in five bytes reaches no further than 2 GiB:
// "jmp *target(%rip)", and the target.
struct FarJump {
  unsigned char code[8];
  uint64_t target;
};
constexpr unsigned char kFarJump[8] = {0xff, 0x25, 2, 0, 0, 0, 0x0f, 0x0b};

// A function with room.
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
FarJump* map_near(const ModuleImage& image, size_t size) {
  constexpr uintptr_t kStep = uintptr_t{1} << 16;
  constexpr uintptr_t kTries = 4096;
  const uintptr_t base = (image.range.low & ~(kStep - 1)) - (size & ~(kStep - 1));
  for (uintptr_t i = 1; i <= kTries && base > (i + 1) * kStep; ++i) {
    const uintptr_t wanted = base - i * kStep;
    const long result = raw_syscall(
        SYS_mmap, static_cast<long>(wanted), static_cast<long>(size),
        PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (result == static_cast<long>(wanted)) return reinterpret_cast<FarJump*>(wanted);
    if (result > 0) raw_syscall(SYS_munmap, result, static_cast<long>(size));
  }
  return nullptr;
}

// False: there is no stub left, or it is too far away.
bool patch(const Sled& sled, FarJump& jump) {
  const uint32_t flags = function_flags(sled.function);
  if ((flags & ARCTRACE_SHIM_HIDDEN) != 0) return false;
  const auto behind = reinterpret_cast<uintptr_t>(sled.begin) + kJumpSize;
  const auto distance = static_cast<int64_t>(reinterpret_cast<uintptr_t>(&jump) - behind);
  const auto short_distance = static_cast<int32_t>(distance);
  const uintptr_t stub =
      distance == short_distance ? stub_for_function(sled.function, sled.end, flags) : 0;
  if (stub == 0) return false;
  __builtin_memcpy(jump.code, kFarJump, sizeof kFarJump);
  jump.target = stub;
  sled.begin[0] = kJump;
  __builtin_memcpy(sled.begin + 1, &short_distance, sizeof short_distance);
  return true;
}

void patch_module(const ModuleImage& image, const uintptr_t* places, size_t count) {
  const size_t size = (count * sizeof(FarJump) + 4095) & ~size_t{4095};
  const size_t code_size = image.code.high - image.code.low;
  FarJump* jumps = map_near(image, size);
  if (jumps == nullptr ||
      !protect(image.code.low, code_size, PROT_READ | PROT_WRITE | PROT_EXEC)) {
    return;
  }
  FarJump* next = jumps;
  for (size_t i = 0; i < count; ++i) {
    const Sled sled = find_sled(places[i], image.code);
    if (sled.function != 0 && patch(sled, *next)) ++next;
  }
  // Complete, before anything runs in it.
  protect(reinterpret_cast<uintptr_t>(jumps), size, PROT_READ | PROT_EXEC);
  protect(image.code.low, code_size, PROT_READ | PROT_EXEC);
}

int visit(dl_phdr_info* info, size_t, void* is_first) {
  const bool is_program = *static_cast<bool*>(is_first);
  *static_cast<bool*>(is_first) = false;
  ModuleImage image;
  if (ModuleFile::is_of_system(*info) || !read_module(*info, image) ||
      image.code.low == image.code.high) {
    return 0;
  }
  const ModuleFile file(*info, is_program);
  if (file.descriptor() < 0) return 0;
  const ElfSections sections(file.descriptor());
  const ElfW(Shdr)* found = sections.find(kPatchableSection);
  if (found == nullptr || (found->sh_flags & SHF_ALLOC) == 0) return 0;
  const uintptr_t low = image.bias + found->sh_addr;
  const uintptr_t size = found->sh_size;
  if (!image.range.contains(low) || size > image.range.high - low) return 0;
  patch_module(image, reinterpret_cast<const uintptr_t*>(low), size / sizeof(uintptr_t));
  return 0;
}

}  // namespace

void patch_functions() {
  bool is_first = true;
  dl_iterate_phdr(visit, &is_first);
}

}  // namespace arctrace::shim
