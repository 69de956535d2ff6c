// The source lines of addresses, by the DWARF data of one file.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reader/symbols/debug_files.hpp"
#include "reader/symbols/elf_file.hpp"

namespace arctrace::reader {

struct SourceLine {
  std::string file;  // as the compiler recorded it, mostly absolute; untrusted bytes
  uint32_t line;
};

// The lines of a file. Reads a unit's line program when an address in the unit is first
// asked for. Not thread-safe.
class LineTable {
 public:
  LineTable(LineTable&&) noexcept = default;
  LineTable& operator=(LineTable&&) = delete;
  ~LineTable() = default;

  // `file` is a module, or its debug file, at `path`. Returns nullopt if it has no line
  // numbers, or needs a dwz file that is missing. Reads all debug sections, and the
  // address ranges of the units.
  static std::optional<LineTable> open_untrusted(ElfFile file, const std::string& path,
                                                 const DebugFiles& debug_files);

  // Returns the line of the code at a file address. If an address has several lines, as
  // at the entry of an optimized function, it is the first of them.
  std::optional<SourceLine> find(uint64_t address);

 private:
  struct DwarfEnd {
    void operator()(Dwarf* dwarf) const { dwarf_end(dwarf); }
  };
  // The unit whose DIE is at `die_offset` includes the addresses [start, end).
  struct UnitRange {
    uint64_t start, end;
    Dwarf_Off die_offset;
  };
  using DwarfHandle = std::unique_ptr<Dwarf, DwarfEnd>;

  explicit LineTable(ElfFile file);
  bool attach_supplementary(const std::string& path, const DebugFiles& debug_files);
  void read_unit_ranges();

  // The order matters: each member reads from those before it.
  ElfFile file_;
  std::optional<ElfFile> supplementary_file_;
  DwarfHandle supplementary_;
  DwarfHandle dwarf_;
  std::vector<UnitRange> ranges_;  // sorted by start
};

}  // namespace arctrace::reader
