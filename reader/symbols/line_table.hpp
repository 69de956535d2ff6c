// From address to source line, by the DWARF data of one file.
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

// Not thread-safe.
class LineTable {
 public:
  LineTable(LineTable&&) noexcept = default;
  LineTable& operator=(LineTable&&) = delete;
  ~LineTable() = default;

  // `file`: a module or its debug file, standing at `path`. Nothing if it has no line
  // numbers, or needs a dwz file that is not there. Reads its debug sections and the
  // address ranges of its units; line programs are run when they are needed.
  static std::optional<LineTable> open_untrusted(ElfFile file, const std::string& path,
                                                 const DebugFiles& debug_files);

  // The line of the code at a file address. Where one address has several lines, as at
  // the entry of an optimized function, the first of them.
  std::optional<SourceLine> find(uint64_t address);

 private:
  struct DwarfEnd {
    void operator()(Dwarf* dwarf) const { dwarf_end(dwarf); }
  };
  // What one unit (its DIE at `die_offset`) says about [start, end).
  struct UnitRange {
    uint64_t start, end;
    Dwarf_Off die_offset;
  };
  using DwarfHandle = std::unique_ptr<Dwarf, DwarfEnd>;

  explicit LineTable(ElfFile file);
  bool attach_supplementary(const std::string& path, const DebugFiles& debug_files);
  void read_unit_ranges();

  // The order matters: each reads from those before it.
  ElfFile file_;
  std::optional<ElfFile> supplementary_file_;
  DwarfHandle supplementary_;
  DwarfHandle dwarf_;
  std::vector<UnitRange> ranges_;  // sorted by start
};

}  // namespace arctrace::reader
