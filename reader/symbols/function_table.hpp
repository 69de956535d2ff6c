// The functions of one module by address. Symbols become ranges that do not overlap, so
// that a lookup is one binary search whatever the symbol tables look like.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reader/symbols/elf_file.hpp"

namespace arctrace::reader {

struct FunctionSymbol {
  std::string_view name;  // the linker's; untrusted bytes, not empty
  uint64_t start;         // file address
  uint64_t size;          // bytes; 0: the symbol table does not say
};

// The ranges follow these rules:
// - Symbols outside the executable segments are ignored; sizes are cut at segment ends.
// - Where sized symbols overlap, an address belongs to the one that starts last.
// - An unsized symbol extends to the next symbol or to the end of its section, unless it
//   stands inside a sized one.
// - Of several names of one range the preferred one is global before local before weak,
//   then one with an "@" that begins no version before those that may be cut there, then
//   the one with fewer leading underscores, then the shorter, then the first in byte
//   order.
class FunctionTable {
 public:
  FunctionTable() = default;
  FunctionTable(std::span<const LoadSegment> segments,
                std::span<const ElfSymbolTable> tables);

  // Returns the function at `address`. Its name is valid as long as the table.
  std::optional<FunctionSymbol> find(uint64_t address) const;

  // Returns the function with this linker's name, if the symbol tables have it.
  std::optional<FunctionSymbol> find_named(std::string_view name) const;

  struct NamedRange {
    uint64_t start, end;
    std::string_view name;  // as in FunctionSymbol
    bool is_sized;
  };
  // Returns each function with the first of its ranges, by address. The names are valid
  // as long as the table.
  std::vector<NamedRange> named_ranges() const;

  // The number of ranges.
  size_t size() const { return ranges_.size(); }

 private:
  struct Candidate {
    uint64_t start, end;
    size_t name;  // offset in names_
    uint32_t name_size;
    bool sized;
    uint8_t binding_rank;  // 0 is best
    bool has_at_sign;      // that begins no symbol's version
  };
  struct Range {
    uint64_t start, end;
    size_t candidate;
  };

  void add_candidates(std::span<const LoadSegment> executable,
                      const ElfSymbolTable& table);
  std::string_view name_of(const Candidate& candidate) const;
  bool is_better_name(const Candidate& a, const Candidate& b) const;
  void add_sized_ranges();
  void add_unsized_ranges();

  std::string names_;
  std::vector<Candidate> candidates_;
  std::vector<Range> ranges_;  // sorted, disjoint
};

}  // namespace arctrace::reader
