// Types as DWARF data describes them. The data is untrusted: any part may be missing, and
// types may refer to one another in circles.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "reader/symbols/typed_arg.hpp"

namespace arctrace::reader {

inline constexpr int kDwarfNestingMax = 32;  // of scopes, and of types

// Bounds how much of the data is looked at. Otherwise hostile types, each with two
// members of the next type and 32 deep, would take four billion steps.
class DwarfBudget {
 public:
  void begin_function() { function_ = kFunctionMax; }
  // To be called before each entry of the data is looked at. False: the budget is spent.
  bool spend() {
    if (is_spent()) return false;
    --function_;
    --module_;
    return true;
  }
  // If so, what was found about the function is not reliable.
  bool is_spent() const { return function_ == 0 || module_ == 0; }

 private:
  static constexpr uint64_t kFunctionMax = uint64_t{1} << 14;  // real C++: up to 700
  static constexpr uint64_t kModuleMax = uint64_t{1} << 27;    // half a minute
  uint64_t function_ = kFunctionMax;
  uint64_t module_ = kModuleMax;
};

// The type of a parameter, a member, or a function's result. False: there is none.
bool type_of(Dwarf_Die* die, Dwarf_Die* type);

// Replaces a typedef, const type and the like by the type it stands for. False: that is
// not known.
bool peel(Dwarf_Die* type);

// Both at once.
bool peeled_type_of(Dwarf_Die* die, Dwarf_Die* type);

// The value of an attribute; 0 if there is none.
uint64_t unsigned_attribute(Dwarf_Die* die, unsigned name);

// Whether `tag` is that of a structure, class or union.
bool is_aggregate(int tag);

// Whether an argument of this peeled type is passed as the address of an object.
bool is_passed_by_reference(Dwarf_Die* type, DwarfBudget& budget);

struct ScalarType {
  TypedArg::Kind kind;
  uint32_t size;                             // bytes
  std::vector<Enumerator> enumerators = {};  // in their order, at most 64
};

// The scalar that a peeled type is recorded as; nullopt if it is not recorded.
std::optional<ScalarType> scalar_type(Dwarf_Die* type, DwarfBudget& budget);

}  // namespace arctrace::reader
