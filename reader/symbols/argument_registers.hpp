// In which registers x86-64's calling convention has arguments and results.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <optional>

#include "reader/symbols/dwarf_types.hpp"

namespace arctrace::reader {

// Registers that arguments are passed in, and words of the stack that they are looked for
// in.
inline constexpr uint32_t kIntegerRegisters = 6;
inline constexpr uint32_t kVectorRegisters = 8;
inline constexpr uint32_t kStackWords = 8;

// How many registers of each class a value takes.
struct Registers {
  uint32_t integers = 0, vectors = 0;
};

// Where the convention has the arguments of a function, one after the other.
class ArgumentPlaces {
 public:
  void add_address_of_result() { ++used_.integers; }

  // Of the next one, of this peeled type: from 1 among the registers of its class, and
  // behind those the words of the stack; 0: elsewhere, or in several of them. Nothing:
  // not known, nor what comes behind it.
  std::optional<uint32_t> add(Dwarf_Die* type, bool is_scalar, DwarfBudget& budget);

 private:
  Registers used_;
  uint32_t stack_words_ = 0;
  bool stack_is_known_ = true;
};

// Whether a function gets the address of its result, as a first argument.
bool returns_in_memory(Dwarf_Die* type, DwarfBudget& budget);

// Where the parameter of a function that begins at `entry` really is then, which an
// optimizer may have chosen; `usual`: by the convention. 0: nowhere.
uint32_t place_at_entry(Dwarf_Die* parameter, uint64_t entry, uint32_t usual,
                        bool is_vector);

}  // namespace arctrace::reader
