#include "reader/symbols/line_table.hpp"

#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <gelf.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

namespace arctrace::reader {
namespace {

// Units may share one list of ranges, so that a small file can name very many.
constexpr size_t kRangesMax = size_t{1} << 24;

// libdw reads all debug sections into memory, and unpacks them.
constexpr uint64_t kDebugBytesMax = uint64_t{4} << 30;

// Calls visit(name, section, header) for the debug sections until it returns false.
// True if it never did, and all section headers could be read.
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

// Unpacked, the debug sections are of a size that can be read. Those packed in the GNU
// way (.zdebug_*, given up by 2016) are refused: their size is not in the header.
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

// libdw (0.188) takes it on trust that the last string of .debug_str and .debug_line_str
// ends, and reads on behind the section if it does not. To be asked when libdw has
// unpacked the sections.
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

// Null if the file has no DWARF data, or such as libdw cannot be given.
Dwarf* begin_dwarf(const ElfFile& file) {
  if (!has_readable_size(file.handle())) return nullptr;
  Dwarf* dwarf = dwarf_begin_elf(file.handle(), DWARF_C_READ, nullptr);
  if (dwarf != nullptr && !has_terminated_strings(file.handle())) {
    dwarf_end(dwarf);
    return nullptr;
  }
  return dwarf;
}

// The line whose code includes `address`: the first of those at the greatest address
// that is not above it. Null if there is none, or it ends a sequence.
Dwarf_Line* line_at(Dwarf_Lines* lines, size_t count, uint64_t address) {
  const auto address_of = [lines](size_t index) {
    Dwarf_Addr value = 0;
    dwarf_lineaddr(dwarf_onesrcline(lines, index), &value);
    return value;
  };
  // The first line above a value.
  const auto first_above = [&](uint64_t value) {
    size_t low = 0;
    size_t high = count;
    while (low < high) {
      const size_t middle = low + (high - low) / 2;
      if (address_of(middle) <= value) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  };
  const size_t above = first_above(address);
  if (above == 0) return nullptr;
  const uint64_t row_address = address_of(above - 1);
  size_t index = row_address == 0 ? 0 : first_above(row_address - 1);
  // Ends of other sequences come before a line at the same address.
  for (; index < above; ++index) {
    Dwarf_Line* line = dwarf_onesrcline(lines, index);
    bool ends = false;
    if (dwarf_lineendsequence(line, &ends) == 0 && !ends) return line;
  }
  return nullptr;
}

}  // namespace

LineTable::LineTable(ElfFile file) : file_(std::move(file)) {}

std::optional<LineTable> LineTable::open_untrusted(ElfFile file, const std::string& path,
                                                   const DebugFiles& debug_files) {
  if (!file.has_section(".debug_line")) return std::nullopt;
  LineTable table(std::move(file));
  table.dwarf_.reset(begin_dwarf(table.file_));
  if (table.dwarf_ == nullptr || !table.attach_supplementary(path, debug_files)) {
    return std::nullopt;
  }
  table.read_unit_ranges();
  if (table.ranges_.empty()) return std::nullopt;
  return table;
}

// Without this libdw would open the file itself, by a path out of the untrusted file, and
// wait for ever if that is a FIFO. False: it is needed but not there.
bool LineTable::attach_supplementary(const std::string& path,
                                     const DebugFiles& debug_files) {
  const char* name = nullptr;
  const void* bytes = nullptr;
  const ssize_t size = dwelf_dwarf_gnu_debugaltlink(dwarf_.get(), &name, &bytes);
  if (size <= 0) return !file_.has_section(".gnu_debugaltlink");
  const std::span view(static_cast<const std::byte*>(bytes), static_cast<size_t>(size));
  auto found = debug_files.find_supplementary_untrusted(
      path, name, BuildId(view.begin(), view.end()));
  if (!found || found->elf.has_section(".gnu_debugaltlink")) return false;
  supplementary_file_.emplace(std::move(found->elf));
  supplementary_.reset(begin_dwarf(*supplementary_file_));
  if (supplementary_ == nullptr) return false;
  dwarf_setalt(dwarf_.get(), supplementary_.get());
  return true;
}

// Not by .debug_aranges, which clang does not write.
void LineTable::read_unit_ranges() {
  Dwarf_CU* unit = nullptr;
  Dwarf_Die die;
  uint8_t type = 0;
  while (ranges_.size() < kRangesMax &&
         dwarf_get_units(dwarf_.get(), unit, &unit, nullptr, &type, &die, nullptr) == 0) {
    if (type != DW_UT_compile && type != DW_UT_skeleton) continue;
    Dwarf_Addr base = 0;
    Dwarf_Addr start = 0;
    Dwarf_Addr end = 0;
    ptrdiff_t next = 0;
    while (ranges_.size() < kRangesMax &&
           (next = dwarf_ranges(&die, next, &base, &start, &end)) > 0) {
      if (start < end) ranges_.push_back({start, end, dwarf_dieoffset(&die)});
    }
  }
  std::sort(ranges_.begin(), ranges_.end(),
            [](const UnitRange& a, const UnitRange& b) { return a.start < b.start; });
}

std::optional<SourceLine> LineTable::find(uint64_t address) {
  const auto above = std::upper_bound(
      ranges_.begin(), ranges_.end(), address,
      [](uint64_t value, const UnitRange& range) { return value < range.start; });
  if (above == ranges_.begin() || std::prev(above)->end <= address) return std::nullopt;
  Dwarf_Die die;
  Dwarf_Lines* lines = nullptr;
  size_t count = 0;
  if (dwarf_offdie(dwarf_.get(), std::prev(above)->die_offset, &die) == nullptr ||
      dwarf_getsrclines(&die, &lines, &count) != 0) {
    return std::nullopt;
  }
  Dwarf_Line* line = line_at(lines, count, address);
  int number = 0;
  if (line == nullptr || dwarf_lineno(line, &number) != 0 || number <= 0) {
    return std::nullopt;
  }
  const char* file = dwarf_linesrc(line, nullptr, nullptr);
  if (file == nullptr) return std::nullopt;
  return SourceLine{file, static_cast<uint32_t>(number)};
}

}  // namespace arctrace::reader
