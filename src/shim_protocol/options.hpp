// What the recorder wants of the shim, in the environment's ARCTRACE_OPTIONS.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arctrace::shim {

enum class LibraryCalls : uint8_t {
  kNone,
  kProgram,  // those that the program itself makes
  kAll       // those between libraries too
};

// What a function must match to be chosen or left out, in the user's words: a glob, or
// behind "re:" an extended regular expression.
struct Pattern {
  enum class Kind : uint8_t { kChosen, kLeftOut, kModule, kValues };
  Kind kind;
  const char* text;
  const char* values = nullptr;  // of kValues: see call_values.hpp
};

// A function of a module with compiled-in hooks.
struct FunctionPlace {
  uint64_t device, inode;  // of the module's file
  uint64_t address;        // there
  bool operator==(const FunctionPlace&) const = default;
};

// What the recorder has read of a function's types.
struct FunctionTypes {
  FunctionPlace place;
  const char* name;    // the linker's, of a library's function; else null
  const char* values;  // see call_values.hpp
  // Of the arguments among them: "a,b", a name of an enumeration's value as SPEC.md has
  // it: "a/1=one"; of the result: "/1=one". Empty: not known.
  const char* names;
  const char* result_names;
};

// In the place of a pattern's values: as the types have them.
inline constexpr char kTypedArguments = 'A';
inline constexpr char kTypedResult = 'R';

struct ShimOptions {
  static constexpr size_t kPatternsMax = 64;
  static constexpr size_t kTypesMax = 500;

  LibraryCalls library_calls = LibraryCalls::kNone;
  Pattern patterns[kPatternsMax] = {};
  size_t pattern_count = 0;
  FunctionTypes types[kTypesMax] = {};
  size_t type_count = 0;
  uint32_t depth_max = 0;  // 0: any
  uint64_t min_ns = 0;     // 0: any
  uint64_t size_min = 0;   // of functions, in bytes

  bool auto_values = false;  // of well-known functions
  bool live = false;         // functions may be chosen anew at any time

  bool have_values() const {
    bool found = auto_values;
    for (size_t i = 0; i < pattern_count; ++i) {
      found = found || patterns[i].kind == Pattern::Kind::kValues;
    }
    return found;
  }
  bool have_filter() const {
    bool found = false;
    for (size_t i = 0; i < pattern_count; ++i) {
      found = found || patterns[i].kind != Pattern::Kind::kValues;
    }
    return found || depth_max != 0 || min_ns != 0 || size_min != 0;
  }
};

// "NAME=VALUE;NAME=VALUE": libcall=none|program|all, filter=, notrace= and module= with a
// pattern each, in their order; values= with what is recorded of a call, ":" and a
// pattern; types=DEVICE:INODE, in hex, of the file of the functions that follow, each
// function=ADDRESS:VALUES:NAMES:RESULT or, of libraries, callee=NAME:VALUES:NAMES:RESULT;
// autovalues=yes; live=yes; depth=, time= (ns) and size= with a number. In a
// value "%3B" stands for ";" and "%25" for "%". What it does not know is left out, as is
// what it has no room for. The patterns stand in memory of its own: to be called once.
void parse_options(const char* text, ShimOptions& options);

}  // namespace arctrace::shim
