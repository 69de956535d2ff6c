// Reads modules' dynamic sections. It trusts the module as far as the loader does, which
// has used the same tables.
#include "writer_shim/elf/module_slots.hpp"

#include <elf.h>
#include <sys/auxv.h>

#include "src/base/text.hpp"

namespace arctrace::shim {
namespace {

// Whether the segment of `address` is writable, at least until the module is relocated.
bool is_writable(const dl_phdr_info& info, uintptr_t address) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    const uintptr_t low = info.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && address >= low && address - low < segment.p_memsz) {
      return (segment.p_flags & PF_W) != 0;
    }
  }
  return false;
}

void read_segments(const dl_phdr_info& info, ModuleImage& image) {
  image.range = {UINTPTR_MAX, 0};
  const uintptr_t page = getauxval(AT_PAGESZ);
  unsigned executable = 0;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    const uintptr_t low = info.dlpi_addr + segment.p_vaddr;
    const uintptr_t high = low + segment.p_memsz;
    if (segment.p_type == PT_GNU_RELRO) {
      // The loader leaves a page writable that is read-only in part.
      image.read_only = {low & ~(page - 1), high & ~(page - 1)};
    }
    if (segment.p_type != PT_LOAD) continue;
    if (low < image.range.low) image.range.low = low;
    if (high > image.range.high) {
      image.range.high = high;
      const bool is_writable = (segment.p_flags & PF_W) != 0;
      image.unused = is_writable ? AddressRange{high, (high + page - 1) & ~(page - 1)}
                                 : AddressRange{};
    }
    if ((segment.p_flags & PF_X) != 0 && ++executable == 1) image.code = {low, high};
  }
  if (executable > 1) image.code = {};
  if (image.read_only.contains(image.unused.low)) image.unused = {};
}

}  // namespace

bool ModuleImage::imports(const char* name) const {
  const auto are_found_in = [&](const ElfW(Rela) * slots, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      if (equal(name_of(slots[i]), name)) return true;
    }
    return false;
  };
  return are_found_in(jump_slots, jump_slot_count) ||
         are_found_in(relocations, relocation_count);
}

bool read_module(const dl_phdr_info& info, ModuleImage& image) {
  image = {};
  image.bias = info.dlpi_addr;
  read_segments(info, image);
  ElfW(Dyn)* section = nullptr;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    if (info.dlpi_phdr[i].p_type == PT_DYNAMIC) {
      section = reinterpret_cast<ElfW(Dyn)*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
    }
  }
  if (section == nullptr) return false;
  if (is_writable(info, reinterpret_cast<uintptr_t>(section))) {
    for (ElfW(Dyn)* entry = section; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == DT_INIT) image.initializer = &entry->d_un.d_ptr;
    }
  }
  return read_dynamic_section(section, image);
}

bool read_dynamic_section(const ElfW(Dyn) * entry, ModuleImage& image) {
  size_t jump_slots_size = 0;
  size_t relocations_size = 0;
  bool is_rela = false;
  // The loader has added the bias to most addresses in the section, but not to all.
  const auto address = [&](const ElfW(Dyn) & of) {
    const uintptr_t value = of.d_un.d_ptr;
    return image.range.contains(value) ? value : value + image.bias;
  };
  for (; entry->d_tag != DT_NULL; ++entry) {
    switch (entry->d_tag) {
      case DT_JMPREL:
        image.jump_slots = reinterpret_cast<const ElfW(Rela)*>(address(*entry));
        break;
      case DT_PLTRELSZ:
        jump_slots_size = entry->d_un.d_val;
        break;
      case DT_PLTREL:
        is_rela = entry->d_un.d_val == DT_RELA;
        break;
      case DT_RELA:
        image.relocations = reinterpret_cast<const ElfW(Rela)*>(address(*entry));
        break;
      case DT_RELASZ:
        relocations_size = entry->d_un.d_val;
        break;
      case DT_SYMTAB:
        image.symbols = reinterpret_cast<const ElfW(Sym)*>(address(*entry));
        break;
      case DT_STRTAB:
        image.strings = reinterpret_cast<const char*>(address(*entry));
        break;
      case DT_GNU_HASH:
        image.gnu_hash = reinterpret_cast<const uint32_t*>(address(*entry));
        break;
      case DT_HASH:
        image.sysv_hash = reinterpret_cast<const uint32_t*>(address(*entry));
        break;
      case DT_VERSYM:
        image.versions = reinterpret_cast<const uint16_t*>(address(*entry));
        break;
      default:
        break;
    }
  }
  if (image.symbols == nullptr || image.strings == nullptr) return false;
  if (image.jump_slots != nullptr && is_rela) {
    image.jump_slot_count = jump_slots_size / sizeof(ElfW(Rela));
  }
  if (image.relocations != nullptr) {
    image.relocation_count = relocations_size / sizeof(ElfW(Rela));
  }
  return true;
}

}  // namespace arctrace::shim
