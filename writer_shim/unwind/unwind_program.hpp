// Runs the call frame instructions of unwind tables (DWARF's CFA program), as far as they
// are about the caller's frame.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/base/unwind_bytes.hpp"
#include "writer_shim/arch/machine.hpp"
#include "writer_shim/unwind/frame_rule.hpp"

namespace arctrace::shim {

// The values of a common information entry for the entries that refer to it.
struct UnwindCie {
  uint64_t code_alignment = 0;
  int64_t data_alignment = 0;
  uint8_t encoding = kPointerAbsolute;
  bool has_augmentation = false;
};

// Where the caller's value of a register is saved.
using SavedAt = FrameRule::FramePointer;
struct SavedRegister {
  SavedAt where = SavedAt::kSame;
  int64_t offset = 0;
};

// The rules at one address.
struct UnwindRow {
  uint64_t base_register = 0;
  int64_t offset = 0;
  bool is_saved = false;    // an expression: the word at base register + offset
  bool is_unknown = false;  // another expression
  SavedRegister frame_pointer;
  SavedRegister return_address;

  // The rule for a register; null: the register is not needed.
  SavedRegister* saved(uint64_t number) {
    if (number == machine::kFramePointerRegister) return &frame_pointer;
    return number == machine::kReturnAddressRegister ? &return_address : nullptr;
  }
};

class UnwindProgram {
 public:
  // Runs for the function that begins at `begin`; `cie` must outlive this.
  UnwindProgram(const UnwindCie& cie, uintptr_t begin, uintptr_t pc)
      : cie_(cie), location_(begin), pc_(pc) {}

  // Stops at the row for the address. False: an instruction is unknown, or broken.
  bool run(UnwindBytes& code);

  // Stores the rules of the common entry, to which "restore" goes back.
  void keep_initial() { initial_ = row_; }

  const UnwindRow& row() const { return row_; }

 private:
  static constexpr size_t kRemembered = 8;

  void advance(uint64_t by) { move_to(location_ + by * cie_.code_alignment); }
  void move_to(uintptr_t location) {
    location_ = location;
    past_ = location > pc_;
  }
  int64_t factored(uint64_t offset) const {
    return static_cast<int64_t>(offset) * cie_.data_alignment;
  }
  void save(uint64_t number, SavedAt where, int64_t offset);
  void save_expression(uint64_t number, UnwindBytes code, bool is_address);
  void restore(uint64_t number);
  bool step(uint8_t opcode, UnwindBytes& code);
  bool step_cfa(uint8_t opcode, UnwindBytes& code);
  void set_cfa(uint64_t base_register, int64_t offset);
  void set_cfa_expression(UnwindBytes code);

  const UnwindCie& cie_;
  uintptr_t location_;
  uintptr_t pc_;
  bool past_ = false;
  UnwindRow row_;
  UnwindRow initial_;
  UnwindRow remembered_[kRemembered];
  size_t remembered_count_ = 0;
};

}  // namespace arctrace::shim
