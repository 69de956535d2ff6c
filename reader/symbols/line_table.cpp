#include "reader/symbols/line_table.hpp"

#include <dwarf.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "reader/symbols/dwarf_data.hpp"

namespace arctrace::reader {
namespace {

// A limit for hostile files: units may share one list of ranges, so that a small file can
// have very many.
constexpr size_t kRangesMax = size_t{1} << 24;

// Returns the line whose code includes `address`: the first line at the greatest address
// that is not above it. Null if there is none, or it ends a sequence.
Dwarf_Line* line_at(Dwarf_Lines* lines, size_t count, uint64_t address) {
  const auto address_of = [lines](size_t index) {
    Dwarf_Addr value = 0;
    dwarf_lineaddr(dwarf_onesrcline(lines, index), &value);
    return value;
  };
  // Returns the first line above a value.
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
  // Lines that end other sequences come before a line at the same address.
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
  table.dwarf_.reset(begin_dwarf_untrusted(table.file_));
  if (table.dwarf_ == nullptr || !table.attach_supplementary(path, debug_files)) {
    return std::nullopt;
  }
  table.read_unit_ranges();
  if (table.ranges_.empty()) return std::nullopt;
  return table;
}

bool LineTable::attach_supplementary(const std::string& path,
                                     const DebugFiles& debug_files) {
  if (!find_supplementary_untrusted(file_, dwarf_.get(), path, debug_files,
                                    supplementary_file_)) {
    return false;
  }
  if (!supplementary_file_) return true;
  supplementary_.reset(begin_dwarf_untrusted(*supplementary_file_));
  if (supplementary_ == nullptr) return false;
  dwarf_setalt(dwarf_.get(), supplementary_.get());
  return true;
}

// The ranges are not read from .debug_aranges, which clang does not write.
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
