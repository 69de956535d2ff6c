// Types as DWARF data has them: untrusted, so that all may be missing, or go round in
// circles.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <optional>

#include "reader/symbols/function_types.hpp"

namespace arctrace::reader {

inline constexpr int kDwarfNestingMax = 32;  // of scopes, of types

// The type of a parameter, a function's result, a member. False: there is none.
bool type_of(Dwarf_Die* die, Dwarf_Die* type);

// What a typedef, a const and the like stand for. False: it is not known.
bool peel(Dwarf_Die* type);

bool peeled_type_of(Dwarf_Die* die, Dwarf_Die* type);

// 0 if there is none.
uint64_t unsigned_attribute(Dwarf_Die* die, unsigned name);

bool is_aggregate(int tag);

// Whether an argument of this class is the address of an object.
bool is_passed_by_reference(Dwarf_Die* type);

struct ScalarType {
  TypedValue::Kind kind;
  uint32_t size;  // bytes
};

// Of a peeled type. Nothing: it is none that we record.
std::optional<ScalarType> scalar_type(Dwarf_Die* type);

}  // namespace arctrace::reader
