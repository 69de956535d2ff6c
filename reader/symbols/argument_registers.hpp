// In which registers x86-64's calling convention has arguments and results.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <optional>

#include "reader/symbols/dwarf_types.hpp"

namespace arctrace::reader {

// Registers that arguments are passed in.
inline constexpr uint32_t kIntegerRegisters = 6;
inline constexpr uint32_t kVectorRegisters = 8;

// How many registers of each class a value takes; neither: it is in memory.
struct Registers {
  uint32_t integers = 0, vectors = 0;
};

// Of a peeled type. Nothing: not known, so that nothing is known of what comes behind
// either.
std::optional<Registers> registers_of(Dwarf_Die* type, DwarfBudget& budget);

// Whether a function gets the address of its result, as a first argument.
bool returns_in_memory(Dwarf_Die* type, DwarfBudget& budget);

// Where the parameter of a function that begins at `entry` really is then, from 1 among
// the registers of its class, which an optimizer may have chosen; `usual`: by the
// convention. 0: nowhere.
uint32_t place_at_entry(Dwarf_Die* parameter, uint64_t entry, uint32_t usual,
                        bool is_vector);

}  // namespace arctrace::reader
