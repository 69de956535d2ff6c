// What arguments functions take and what they return, by the DWARF data of a module, and
// in which registers of x86-64 the calling convention has them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reader/symbols/debug_files.hpp"

namespace arctrace::reader {

struct Enumerator {
  std::string name;  // untrusted bytes
  int64_t value;
};

struct TypedValue {
  enum class Kind {
    kSigned,
    kUnsigned,
    kBool,
    kChar,
    kPointer,
    kString,     // char*
    kStdString,  // the address of one of libstdc++'s
    kFloat
  };
  std::string name;  // of a parameter; untrusted bytes, empty: none
  Kind kind = Kind::kSigned;
  uint32_t size = 0;   // bytes
  uint32_t place = 0;  // from 1, among the integer or the vector ones; result: 0
  std::vector<Enumerator> enumerators = {};  // of an enumeration
};

// Without what is not known, passed in memory, or of a type that is none of the above.
struct FunctionTypes {
  std::vector<TypedValue> arguments;
  std::optional<TypedValue> result;
};

struct ModuleTypes {
  std::map<uint64_t, FunctionTypes> defined;      // by file address
  std::map<std::string, FunctionTypes> declared;  // by linker's name, of other modules
};

// Of the wanted functions, those that the DWARF data of the module at `path`, or of its
// debug file, knows: none without such data, or if it is not x86-64's.
ModuleTypes read_function_types_untrusted(const std::string& path,
                                          const DebugFiles& debug_files,
                                          const std::set<uint64_t>& defined,
                                          const std::set<std::string>& declared);

}  // namespace arctrace::reader
