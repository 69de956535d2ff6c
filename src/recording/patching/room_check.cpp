#include "src/recording/patching/room_check.hpp"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "reader/symbols/elf_file.hpp"
#include "src/recorder/patch_analysis/unwind_table.hpp"
#include "src/recording/patching/module_code_file.hpp"

namespace arctrace::recording {
namespace {

constexpr char kRooms[] = "__patchable_function_entries";

// The section's addresses; empty: there is none.
CodeRange section_range(const reader::ElfFile& elf) {
  CodeRange range{};
  elf.for_each_section([&range](const reader::ElfSection& section) {
    if (std::string_view(section.name) != kRooms || section.size >= uint64_t{1} << 32) {
      return true;
    }
    range = {section.address, section.address + section.size};
    return false;
  });
  return range;
}

// Parts of this type, one after the other in `bytes`.
template <class Part>
std::vector<Part> parts_of(const std::string& bytes) {
  std::vector<Part> parts(bytes.size() / sizeof(Part));
  if (!parts.empty())
    std::memcpy(parts.data(), bytes.data(), parts.size() * sizeof(Part));
  return parts;
}

// What the section has when the program is loaded.
std::vector<uint64_t> addresses_of_rooms(const reader::ElfFile& elf) {
  const std::string words = elf.section_bytes(kRooms).value_or("");
  std::vector<uint64_t> addresses = parts_of<uint64_t>(words);
  const CodeRange range = section_range(elf);
  const std::string relocations = elf.section_bytes(".rela.dyn").value_or("");
  for (const Elf64_Rela& relocation : parts_of<Elf64_Rela>(relocations)) {
    if (ELF64_R_TYPE(relocation.r_info) != R_X86_64_RELATIVE ||
        !range.contains(relocation.r_offset)) {
      continue;
    }
    const uint64_t i = (relocation.r_offset - range.start) / sizeof(uint64_t);
    if (i < addresses.size()) addresses[i] = static_cast<uint64_t>(relocation.r_addend);
  }
  return addresses;
}

// Whether an entry of the table is about the function whose room begins at `address`, or
// ends before the function.
bool has_begin(const ModuleCode& code, const UnwindTable& unwind, uint64_t address) {
  constexpr std::byte kNop{0x90};
  if (unwind.find(address) != nullptr) return true;
  for (const std::byte byte : code.bytes_at(address)) {
    if (byte != kNop) return false;
    if (unwind.find(++address) != nullptr) return true;
  }
  return false;
}

}  // namespace

Rooms count_rooms_untrusted(const std::string& path) {
  Rooms rooms;
  const auto elf = reader::ElfFile::open_untrusted(path);
  if (!elf.ok() || !elf->has_section(kRooms)) return rooms;
  const std::vector<uint64_t> addresses = addresses_of_rooms(*elf);
  rooms.all = addresses.size();
  if (elf->has_section(".symtab")) return rooms;
  const auto module = read_module_code_untrusted(path);
  if (!module.ok()) return rooms;
  const UnwindTable unwind(module->code);
  rooms.without_begin = static_cast<size_t>(std::count_if(
      addresses.begin(), addresses.end(),
      [&](uint64_t address) { return !has_begin(module->code, unwind, address); }));
  return rooms;
}

}  // namespace arctrace::recording
