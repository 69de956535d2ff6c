// The types of the args and retvals of functions, by the DWARF data of a module, and the
// registers or words in which the calling convention of x86-64 passes the args.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reader/symbols/debug_files.hpp"
#include "reader/symbols/typed_arg.hpp"

namespace arctrace::reader {

// The types of a function, without args that are not known, passed in memory, or of a
// type that is not recorded.
struct FunctionTypes {
  std::vector<TypedArg> args;
  std::optional<TypedArg> retval;
};

struct ModuleTypes {
  std::map<uint64_t, FunctionTypes> defined;      // by file address
  std::map<std::string, FunctionTypes> declared;  // by linker's name, of other modules
};

// Returns the types of those of the wanted functions that the DWARF data of the module at
// `path`, or of its debug file, describes. Empty if it has no such data, or is not of
// x86-64. The time is proportional to the size of the data, and bounded (DwarfBudget).
ModuleTypes read_function_types_untrusted(const std::string& path,
                                          const DebugFiles& debug_files,
                                          const std::set<uint64_t>& defined,
                                          const std::set<std::string>& declared);

}  // namespace arctrace::reader
