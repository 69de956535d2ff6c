// The DWARF data of a file, as far as libdw can be trusted with it, and the types that it
// describes. The data is untrusted: any part may be missing, and types may refer to one
// another in circles.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reader/symbols/debug_files.hpp"
#include "reader/symbols/elf_file.hpp"
#include "reader/symbols/typed_arg.hpp"

namespace arctrace::reader {

// Returns the DWARF data of a file. The caller ends it by dwarf_end() before `file` is
// closed. Null if the file has no DWARF data, or data that libdw must not be given.
Dwarf* begin_dwarf_untrusted(const ElfFile& file);

struct DwarfEnd {
  void operator()(Dwarf* dwarf) const { dwarf_end(dwarf); }
};
using DwarfHandle = std::unique_ptr<Dwarf, DwarfEnd>;

// Sets `found` to the dwz file that the DWARF data of `file` at `path` needs, or to
// nullopt if it needs none. Without this libdw would open that file itself, by a path
// from the untrusted file, and wait for ever if it is a FIFO. Returns false if the file
// is needed but missing.
bool find_supplementary_untrusted(const ElfFile& file, Dwarf* dwarf,
                                  const std::string& path, const DebugFiles& debug_files,
                                  std::optional<ElfFile>& found);

inline constexpr int kDwarfNestingMax = 32;  // of scopes, and of types

// Bounds how many entries of the data are read. Otherwise hostile types, each with two
// members of the next type and 32 deep, would take four billion steps.
class DwarfBudget {
 public:
  void begin_function() { function_ = kFunctionMax; }
  // To be called before each entry of the data is read. Returns false if the budget is
  // spent.
  bool spend() {
    if (is_spent()) return false;
    --function_;
    --module_;
    return true;
  }
  // Once the budget is spent, the results about the function are not reliable.
  bool is_spent() const { return function_ == 0 || module_ == 0; }

 private:
  static constexpr uint64_t kFunctionMax = uint64_t{1} << 14;  // real C++: up to 700
  static constexpr uint64_t kModuleMax = uint64_t{1} << 27;    // half a minute
  uint64_t function_ = kFunctionMax;
  uint64_t module_ = kModuleMax;
};

// Sets `type` to that of a parameter, a member, or a function's result. Returns false if
// there is none.
bool type_of(Dwarf_Die* die, Dwarf_Die* type);

// Replaces a typedef, const type and the like by the type for which it stands. Returns
// false if that is not known.
bool peel(Dwarf_Die* type);

// Does type_of() and peel() at once.
bool peeled_type_of(Dwarf_Die* die, Dwarf_Die* type);

// Returns the value of an attribute; 0 if there is none.
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

// Returns the scalar as which a peeled type is recorded; nullopt if it is not recorded.
std::optional<ScalarType> scalar_type(Dwarf_Die* type, DwarfBudget& budget);

}  // namespace arctrace::reader
