// The type of one arg of a function, or of its retval, as far as it can be recorded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace arctrace::reader {

struct Enumerator {
  std::string name;  // untrusted bytes
  int64_t value;
};

struct TypedArg {
  enum class Kind {
    kSigned,
    kUnsigned,
    kBool,
    kChar,
    kPointer,
    kString,     // char*
    kStdString,  // the address of a std::string of libstdc++
    kFloat
  };
  std::string name;  // of the parameter; untrusted bytes, empty: none
  Kind kind = Kind::kSigned;
  uint32_t size = 0;  // bytes
  // The position of an arg, from 1: among the integer or the vector registers, and after
  // these among the words of the stack. Of a retval: 0.
  uint32_t position = 0;
  std::vector<Enumerator> enumerators = {};  // if its type is an enumeration
};

}  // namespace arctrace::reader
