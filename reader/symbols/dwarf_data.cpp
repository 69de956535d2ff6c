#include "reader/symbols/dwarf_data.hpp"

#include <elfutils/libdwelf.h>
#include <gelf.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace arctrace::reader {
namespace {

// The limit for all debug sections together, which libdw reads into memory and unpacks.
constexpr uint64_t kDebugBytesMax = uint64_t{4} << 30;

// Calls visit(name, section, header) for each debug section until a call returns false.
// True if none did, and all section headers could be read.
template <typename Visit>
bool for_debug_sections(Elf* elf, Visit visit) {
  size_t names_index = 0;
  if (elf_getshdrstrndx(elf, &names_index) != 0) return false;
  for (Elf_Scn* section = elf_nextscn(elf, nullptr); section != nullptr;
       section = elf_nextscn(elf, section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) return false;
    const char* text = elf_strptr(elf, names_index, header.sh_name);
    if (text == nullptr) return false;
    const std::string_view name(text);
    if (header.sh_type != SHT_NOBITS && name.find("debug_") != std::string_view::npos &&
        !visit(name, section, header)) {
      return false;
    }
  }
  return true;
}

// Whether the debug sections, once unpacked, are small enough to be read. Sections packed
// in the old GNU way (.zdebug_*, given up by 2016) are refused, because their size is not
// in the header.
bool has_readable_size(Elf* elf) {
  uint64_t total = 0;
  return for_debug_sections(
      elf, [&total](std::string_view name, Elf_Scn* section, const GElf_Shdr& header) {
        uint64_t size = header.sh_size;
        if ((header.sh_flags & SHF_COMPRESSED) != 0) {
          GElf_Chdr packed;
          if (gelf_getchdr(section, &packed) == nullptr) return false;
          size = packed.ch_size;
        }
        return !name.starts_with(".z") && !__builtin_add_overflow(total, size, &total) &&
               total <= kDebugBytesMax;
      });
}

// Whether the last strings of .debug_str and .debug_line_str end. libdw (0.188) trusts
// that they do, and would read past the section. REQUIRES: libdw has unpacked the
// sections.
bool has_terminated_strings(Elf* elf) {
  return for_debug_sections(
      elf, [](std::string_view name, Elf_Scn* section, const GElf_Shdr&) {
        if (name.ends_with(".dwo")) name.remove_suffix(4);
        if (!name.ends_with("_str")) return true;
        const Elf_Data* data = elf_getdata(section, nullptr);
        if (data == nullptr || data->d_buf == nullptr || data->d_size == 0) return true;
        return static_cast<const char*>(data->d_buf)[data->d_size - 1] == '\0';
      });
}

}  // namespace

Dwarf* begin_dwarf_untrusted(const ElfFile& file) {
  if (!has_readable_size(file.handle())) return nullptr;
  Dwarf* dwarf = dwarf_begin_elf(file.handle(), DWARF_C_READ, nullptr);
  if (dwarf != nullptr && !has_terminated_strings(file.handle())) {
    dwarf_end(dwarf);
    return nullptr;
  }
  return dwarf;
}

bool find_supplementary_untrusted(const ElfFile& file, Dwarf* dwarf,
                                  const std::string& path, const DebugFiles& debug_files,
                                  std::optional<ElfFile>& found) {
  const char* name = nullptr;
  const void* bytes = nullptr;
  const ssize_t size = dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &bytes);
  if (size <= 0) return !file.has_section(".gnu_debugaltlink");
  const std::span view(static_cast<const std::byte*>(bytes), static_cast<size_t>(size));
  auto supplementary = debug_files.find_supplementary_untrusted(
      path, name, BuildId(view.begin(), view.end()));
  if (!supplementary || supplementary->elf.has_section(".gnu_debugaltlink")) return false;
  found.emplace(std::move(supplementary->elf));
  return true;
}

}  // namespace arctrace::reader
