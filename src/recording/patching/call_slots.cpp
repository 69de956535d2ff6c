// Looks for the addresses of a program's slots among the operands of its code.
#include "src/recording/patching/call_slots.hpp"

#include <absl/container/flat_hash_set.h>
#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string_view>

#include "reader/symbols/elf_file.hpp"

namespace arctrace::recording {
namespace {

constexpr uint64_t kCodeBytesMax = uint64_t{1} << 30;

// What the compiler's own start files call, and weak functions that hardly exist.
constexpr std::string_view kStartUp[] = {"__libc_start_main", "__cxa_finalize",
                                         "__gmon_start__", "_ITM_deregisterTMCloneTable",
                                         "_ITM_registerTMCloneTable"};

template <class Part>
Part part_at(const std::string& bytes, uint64_t offset) {
  Part part{};
  if (offset <= bytes.size() && bytes.size() - offset >= sizeof part) {
    std::memcpy(&part, bytes.data() + offset, sizeof part);
  }
  return part;
}

bool has_jump_slots(const std::string& relocations) {
  for (size_t at = 0; at < relocations.size(); at += sizeof(Elf64_Rela)) {
    if (ELF64_R_TYPE(part_at<Elf64_Rela>(relocations, at).r_info) == R_X86_64_JUMP_SLOT) {
      return true;
    }
  }
  return false;
}

// The addresses of slots of imported functions, without those of start-up.
absl::flat_hash_set<uint64_t> function_slots(const reader::ElfFile& file) {
  const std::string relocations = file.section_bytes(".rela.dyn").value_or("");
  const std::string symbols = file.section_bytes(".dynsym").value_or("");
  const std::string names = file.section_bytes(".dynstr").value_or("");
  absl::flat_hash_set<uint64_t> slots;
  for (size_t at = 0; at < relocations.size(); at += sizeof(Elf64_Rela)) {
    const auto relocation = part_at<Elf64_Rela>(relocations, at);
    if (ELF64_R_TYPE(relocation.r_info) != R_X86_64_GLOB_DAT) continue;
    const auto symbol =
        part_at<Elf64_Sym>(symbols, ELF64_R_SYM(relocation.r_info) * sizeof(Elf64_Sym));
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx != SHN_UNDEF ||
        symbol.st_name >= names.size()) {
      continue;
    }
    const std::string_view name = names.c_str() + symbol.st_name;
    if (std::find(std::begin(kStartUp), std::end(kStartUp), name) == std::end(kStartUp)) {
      slots.insert(relocation.r_offset);
    }
  }
  return slots;
}

// Whether four bytes of the code, which begins at `address`, are the distance of a slot
// from their end, as in the instructions that call or load it.
bool names_any(const std::string& code, uint64_t address,
               const absl::flat_hash_set<uint64_t>& slots) {
  for (size_t at = 0; at + sizeof(int32_t) <= code.size(); ++at) {
    const auto distance = part_at<int32_t>(code, at);
    const uint64_t end = address + at + sizeof distance;
    if (slots.contains(end + static_cast<uint64_t>(int64_t{distance}))) return true;
  }
  return false;
}

}  // namespace

bool computes_call_slots_untrusted(const std::string& path) {
  const auto file = reader::ElfFile::open_untrusted(path);
  if (!file.ok() || file->header().machine != EM_X86_64 ||
      has_jump_slots(file->section_bytes(".rela.plt").value_or(""))) {
    return false;
  }
  const absl::flat_hash_set<uint64_t> slots = function_slots(*file);
  if (slots.empty()) return false;
  bool is_named = false;
  file->for_each_segment([&](const reader::ElfSegment& segment) {
    const bool is_code = segment.type == PT_LOAD && (segment.flags & PF_X) != 0;
    if (is_code && segment.file_size <= kCodeBytesMax) {
      is_named |= names_any(file->bytes(segment.offset, segment.file_size),
                            segment.address, slots);
    }
    return !is_named;
  });
  return !is_named;
}

}  // namespace arctrace::recording
