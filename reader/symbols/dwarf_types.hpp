// Types as DWARF data has them: untrusted, so that all may be missing, or go round in
// circles.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "reader/symbols/function_types.hpp"

namespace arctrace::reader {

inline constexpr int kDwarfNestingMax = 32;  // of scopes, of types

// How much of hostile data is looked at: types that have one another as members twice, 32
// deep, would be gone through four billion times.
class DwarfBudget {
 public:
  void begin_function() { function_ = kFunctionMax; }
  // To be asked before an entry of the data is looked at. False: it was enough.
  bool spend() {
    if (is_spent()) return false;
    --function_;
    --module_;
    return true;
  }
  // What was found of the function then is not to be relied on.
  bool is_spent() const { return function_ == 0 || module_ == 0; }

 private:
  static constexpr uint64_t kFunctionMax = uint64_t{1} << 14;  // real C++: up to 700
  static constexpr uint64_t kModuleMax = uint64_t{1} << 27;    // half a minute
  uint64_t function_ = kFunctionMax;
  uint64_t module_ = kModuleMax;
};

// The type of a parameter, a function's result, a member. False: there is none.
bool type_of(Dwarf_Die* die, Dwarf_Die* type);

// What a typedef, a const and the like stand for. False: it is not known.
bool peel(Dwarf_Die* type);

bool peeled_type_of(Dwarf_Die* die, Dwarf_Die* type);

// 0 if there is none.
uint64_t unsigned_attribute(Dwarf_Die* die, unsigned name);

bool is_aggregate(int tag);

// Whether an argument of this class is the address of an object.
bool is_passed_by_reference(Dwarf_Die* type, DwarfBudget& budget);

struct ScalarType {
  TypedValue::Kind kind;
  uint32_t size;                             // bytes
  std::vector<Enumerator> enumerators = {};  // in their order, some at most
};

// Of a peeled type. Nothing: it is none that we record.
std::optional<ScalarType> scalar_type(Dwarf_Die* type, DwarfBudget& budget);

}  // namespace arctrace::reader
