#include "reader/symbols/argument_registers.hpp"

#include <dwarf.h>

#include <array>

namespace arctrace::reader {
namespace {

// The class of each eight bytes of an aggregate.
enum class Content { kNothing, kVector, kInteger };
using Contents = std::array<Content, 2>;
constexpr uint64_t kContentsSize = 16;  // bytes

// Adds a part of `type` at `offset` to an aggregate's contents. Returns false if such an
// aggregate is passed in memory.
bool add_contents(Dwarf_Die* type, uint64_t offset, int nesting, DwarfBudget& budget,
                  Contents& contents) {
  if (nesting > kDwarfNestingMax || !budget.spend() || !peel(type)) return false;
  Dwarf_Word size = 0;
  if (dwarf_aggregate_size(type, &size) != 0 || size > kContentsSize ||
      offset > kContentsSize - size) {
    return false;
  }
  const int tag = dwarf_tag(type);
  if (tag == DW_TAG_array_type) {
    Dwarf_Die element;
    Dwarf_Word element_size = 0;
    if (!peeled_type_of(type, &element) ||
        dwarf_aggregate_size(&element, &element_size) != 0 || element_size == 0) {
      return false;
    }
    for (uint64_t at = 0; at < size; at += element_size) {
      if (!add_contents(&element, offset + at, nesting + 1, budget, contents))
        return false;
    }
    return true;
  }
  if (is_aggregate(tag)) {
    Dwarf_Die member;
    for (int more = dwarf_child(type, &member); more == 0 && budget.spend();
         more = dwarf_siblingof(&member, &member)) {
      const int member_tag = dwarf_tag(&member);
      if (member_tag != DW_TAG_member && member_tag != DW_TAG_inheritance) continue;
      if (dwarf_hasattr(&member, DW_AT_external) != 0) continue;  // static
      Dwarf_Die inner;
      if (!type_of(&member, &inner)) return false;
      const uint64_t bits = unsigned_attribute(&member, DW_AT_data_bit_offset);
      const uint64_t at = unsigned_attribute(&member, DW_AT_data_member_location);
      if (!add_contents(&inner, offset + at + bits / 64 * 8, nesting + 1, budget,
                        contents)) {
        return false;
      }
    }
    return true;
  }
  const std::optional<ScalarType> scalar = scalar_type(type, budget);
  if (!scalar) return false;
  Content& content = contents[offset / 8];
  content = scalar->kind == TypedArg::Kind::kFloat && content != Content::kInteger
                ? Content::kVector
                : Content::kInteger;
  return true;
}

// Returns the registers that a value of a peeled type takes: none if it is passed in
// memory, nullopt if that is not known.
std::optional<Registers> registers_of(Dwarf_Die* type, DwarfBudget& budget) {
  if (const auto scalar = scalar_type(type, budget)) {
    return scalar->kind == TypedArg::Kind::kFloat ? Registers{0, 1} : Registers{1, 0};
  }
  const int tag = dwarf_tag(type);
  if (is_passed_by_reference(type, budget)) return Registers{1, 0};
  Dwarf_Word size = 0;
  if (dwarf_aggregate_size(type, &size) != 0) return std::nullopt;
  if (is_aggregate(tag)) {
    Contents contents{};
    if (!add_contents(type, 0, 0, budget, contents)) return Registers{};
    Registers registers;
    for (const Content content : contents) {
      registers.integers += content == Content::kInteger ? 1 : 0;
      registers.vectors += content == Content::kVector ? 1 : 0;
    }
    return registers;
  }
  if (tag == DW_TAG_ptr_to_member_type) {
    return Registers{static_cast<uint32_t>(size / 8), 0};
  }
  const uint64_t encoding = unsigned_attribute(type, DW_AT_encoding);
  if (tag != DW_TAG_base_type) return std::nullopt;
  if (encoding == DW_ATE_complex_float && size <= 16) {
    return Registers{0, static_cast<uint32_t>(size / 8)};
  }
  const bool is_integer = encoding == DW_ATE_signed || encoding == DW_ATE_unsigned;
  if (is_integer && size == 16) return Registers{2, 0};
  return Registers{};  // long double
}

// Returns the position of a register among those of its class, from 1; 0: it passes no
// arguments.
uint32_t argument_register(uint64_t dwarf_register, bool is_vector) {
  constexpr std::array<uint64_t, kIntegerRegisters> kOrder = {5, 4, 1, 2, 8, 9};
  constexpr uint64_t kXmm0 = 17;
  if (is_vector) {
    const bool is_one =
        dwarf_register >= kXmm0 && dwarf_register < kXmm0 + kVectorRegisters;
    return is_one ? static_cast<uint32_t>(dwarf_register - kXmm0) + 1 : 0;
  }
  for (uint32_t i = 0; i < kIntegerRegisters; ++i) {
    if (kOrder[i] == dwarf_register) return i + 1;
  }
  return 0;
}

}  // namespace

std::optional<uint32_t> ArgumentRegisters::add(Dwarf_Die* type, bool is_scalar,
                                               DwarfBudget& budget) {
  const std::optional<Registers> needed = registers_of(type, budget);
  if (!needed) return std::nullopt;
  const bool is_vector = needed->vectors != 0;
  if (needed->integers + needed->vectors != 0 &&
      used_.integers + needed->integers <= kIntegerRegisters &&
      used_.vectors + needed->vectors <= kVectorRegisters) {
    used_.integers += needed->integers;
    used_.vectors += needed->vectors;
    return is_scalar ? is_vector ? used_.vectors : used_.integers : 0;
  }
  // Larger values may be aligned on the stack, which this does not compute.
  if (!is_scalar) stack_is_known_ = false;
  if (!stack_is_known_ || stack_words_ == kStackWords) return 0;
  return (is_vector ? kVectorRegisters : kIntegerRegisters) + ++stack_words_;
}

bool returns_in_memory(Dwarf_Die* type, DwarfBudget& budget) {
  if (is_passed_by_reference(type, budget)) return true;
  if (!is_aggregate(dwarf_tag(type))) return false;
  Contents contents{};
  return !add_contents(type, 0, 0, budget, contents);
}

uint32_t position_at_entry(Dwarf_Die* parameter, uint64_t entry, uint32_t usual,
                           bool is_vector) {
  Dwarf_Attribute attribute;
  Dwarf_Op* operations = nullptr;
  size_t count = 0;
  if (dwarf_attr(parameter, DW_AT_location, &attribute) == nullptr) return 0;
  bool found = dwarf_getlocation_addr(&attribute, entry, &operations, &count, 1) == 1;
  if (!found) {
    // clang gives the location only from the end of the hook on.
    constexpr Dwarf_Addr kHookMax = 16;
    Dwarf_Addr base = 0;
    Dwarf_Addr start = 0;
    Dwarf_Addr end = 0;
    found =
        dwarf_getlocations(&attribute, 0, &base, &start, &end, &operations, &count) > 0 &&
        start >= entry && start - entry <= kHookMax;
  }
  if (!found || count == 0) return 0;
  const uint8_t operation = operations[0].atom;
  if (operation >= DW_OP_reg0 && operation <= DW_OP_reg31 && count == 1) {
    return argument_register(operation - DW_OP_reg0, is_vector);
  }
  // Code that is not optimized gives the memory in which it will store the argument.
  const bool is_indirect = count == 2 && operations[1].atom == DW_OP_deref;
  if (operation == DW_OP_fbreg) return count == 1 || is_indirect ? usual : 0;
  if (operation < DW_OP_breg0 || operation > DW_OP_breg31) return 0;
  // The register may point to the object, if that is passed by reference, or to a part of
  // it.
  const uint32_t position = argument_register(operation - DW_OP_breg0, is_vector);
  const bool is_whole = count == 1 || operations[count - 1].atom == DW_OP_stack_value;
  if (position != 0) return operations[0].number == 0 && is_whole ? position : 0;
  return count == 1 || is_indirect ? usual : 0;  // relative to the frame
}

}  // namespace arctrace::reader
