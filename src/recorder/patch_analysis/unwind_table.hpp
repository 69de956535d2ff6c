// The section .eh_frame of a module: which code each entry is about, the CFA and the
// place of the return address at each instruction, and the entry's exception table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/recorder/patch_analysis/module_code.hpp"

namespace arctrace::recorder {

// The rule from `address` on: the CFA, above which the caller's frame is, is register +
// offset.
struct FrameRow {
  uint64_t address = 0;
  uint64_t base_register = 0;  // DWARF's number: 7 the stack pointer, 6 the frame pointer
  int64_t offset = 0;
  bool is_expression = false;      // the register and the offset are not known
  bool has_return_address = true;  // it is at `return_offset` from the CFA
  int64_t return_offset = 0;
};
inline constexpr uint64_t kDwarfFramePointer = 6;
inline constexpr uint64_t kDwarfStackPointer = 7;

class UnwindTable {
 public:
  struct Entry {
    CodeRange range;
    uint64_t exception_table = 0;  // address; 0: none
    uint32_t cie = 0;
    std::span<const std::byte> program;
  };

  // Reads the table at module.eh_frame. Reading ends at bytes that break the format, and
  // problem() says so; entries before them stay. `module` must outlive this.
  explicit UnwindTable(const ModuleCode& module);

  // The entries by start address. Entries that overlap an earlier one are skipped.
  std::span<const Entry> entries() const { return entries_; }

  // The entry about the address; nullptr: there is none.
  const Entry* find(uint64_t address) const;

  // The rows of an entry in order of address, the first one at its start. There are none
  // if an instruction is unknown or broken.
  void rows_untrusted(const Entry& entry, std::vector<FrameRow>& rows) const;

  // The rules of a common entry as instructions, which apply to all of its entries.
  struct CommonRules {
    uint64_t code_alignment = 1;
    int64_t data_alignment = 1;
    uint64_t return_register = 16;
    std::span<const std::byte> program;
  };
  CommonRules common_rules(const Entry& entry) const {
    const Cie& cie = cies_[entry.cie];
    return {cie.code_alignment, cie.data_alignment, cie.return_register, cie.program};
  }

  // The part of the table that could not be read, in words; empty: there is none.
  const std::string& problem() const { return problem_; }

 private:
  struct Cie {
    uint64_t offset = 0;
    uint64_t code_alignment = 1;
    int64_t data_alignment = 1;
    uint64_t return_register = 16;
    uint8_t pointer_encoding = 0;
    uint8_t exception_encoding = 0xFF;
    bool has_augmentation = false;
    std::span<const std::byte> program;
  };

  bool read_record(std::span<const std::byte> record, uint64_t offset, uint64_t address);
  bool read_cie(std::span<const std::byte> body, uint64_t offset, uint64_t address);
  const Cie* find_cie(uint64_t offset, uint32_t& index) const;
  bool is_code(CodeRange range) const;

  const ModuleCode& module_;
  std::vector<Cie> cies_;
  std::vector<Entry> entries_;
  std::string problem_;
};

// The landing pads of the exception table at `address`: addresses to which an exception
// leads, for the function that begins at `function`. They end at bytes that break the
// format, and at a table of more than `bytes_left`, from which its size is subtracted.
std::vector<uint64_t> landing_pads_untrusted(const ModuleCode& module, uint64_t address,
                                             uint64_t function, size_t& bytes_left);

}  // namespace arctrace::recorder
