// The parts of a module that the analysis needs: its loaded bytes, the functions that are
// known by name, and the pointers into its code. The command reads them from an ELF file.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <vector>

namespace arctrace::recorder {

// [start, end), file addresses.
struct CodeRange {
  uint64_t start = 0, end = 0;
  bool contains(uint64_t address) const { return start <= address && address < end; }
};

struct NamedFunction {
  CodeRange range;
  std::string name;  // the linker's; untrusted bytes
  // Whether the symbol has a size; else `end` is where the next symbol or section begins.
  bool is_sized = true;
};

struct ModuleSegment {
  uint64_t address = 0;
  std::vector<std::byte> bytes;  // those in the file
  bool executable = false;

  CodeRange range() const { return {address, address + bytes.size()}; }
};

// The code of a module; all of it is untrusted.
struct ModuleCode {
  std::vector<ModuleSegment> segments;   // by address; they do not overlap
  std::vector<NamedFunction> functions;  // by address; they do not overlap
  std::vector<CodeRange> stubs;          // procedure linkage tables
  std::vector<uint64_t> pointers;        // of relocations
  std::vector<uint64_t> resolvers;       // of these: to functions that the loader calls
  CodeRange eh_frame;                    // empty: there is none
  // The module is not moved when it is loaded: its code and data have plain addresses.
  bool has_fixed_addresses = false;

  // The segment's bytes from `address` on; empty if there are none.
  std::span<const std::byte> bytes_at(uint64_t address) const {
    const auto next = std::upper_bound(segments.begin(), segments.end(), address,
                                       [](uint64_t value, const ModuleSegment& segment) {
                                         return value < segment.address;
                                       });
    if (next == segments.begin()) return {};
    const ModuleSegment& segment = *std::prev(next);
    const uint64_t offset = address - segment.address;
    if (offset >= segment.bytes.size()) return {};
    return std::span(segment.bytes).subspan(offset);
  }
};

}  // namespace arctrace::recorder
