// The registers in which x86-64's calling convention passes arguments.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <optional>

#include "reader/symbols/dwarf_data.hpp"

namespace arctrace::reader {

// The numbers of registers of each class, and of the words of the stack, in which
// arguments are recorded.
inline constexpr uint32_t kIntegerRegisters = 6;
inline constexpr uint32_t kVectorRegisters = 8;
inline constexpr uint32_t kStackWords = 8;

// How many registers of each class a value takes.
struct Registers {
  uint32_t integers = 0, vectors = 0;
};

// Assigns registers to the arguments of a function, one after another.
class ArgumentRegisters {
 public:
  void add_address_of_result() { ++used_.integers; }

  // Returns the position of the next argument, which has this peeled type: from 1 among
  // the registers of its class, and after those among the words of the stack; 0 if the
  // argument is elsewhere, or takes several of them. nullopt if its position is not
  // known; then neither are those of the arguments after it.
  std::optional<uint32_t> add(Dwarf_Die* type, bool is_scalar, DwarfBudget& budget);

 private:
  Registers used_;
  uint32_t stack_words_ = 0;
  bool stack_is_known_ = true;
};

// Whether a function gets the address of its result as a first argument.
bool returns_in_memory(Dwarf_Die* type, DwarfBudget& budget);

// Returns the position in which the parameter of a function is when the function is
// entered, at `entry`: an optimizer may use another than `usual`, the convention's. 0: in
// none.
uint32_t position_at_entry(Dwarf_Die* parameter, uint64_t entry, uint32_t usual,
                           bool is_vector);

}  // namespace arctrace::reader
