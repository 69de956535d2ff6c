// The protocol by which `arctrace record` gives the shim its options, in the environment
// variable ARCTRACE_OPTIONS. The command encodes the text (options_encoder.hpp) and the
// shim decodes it (decode_options). Both come from one build, so the text is not a stable
// interface.
//
//   TEXT   = OPTION { ";" OPTION }
//   OPTION = KEY "=" FIELD { ":" FIELD }
//
//   libcall=none|program|all                   which library calls are hooked
//   filter=PATTERN                             -F
//   notrace=PATTERN                            -N
//   module=PATTERN                             -L
//   entryonly=PATTERN                          --entry-only
//   patch=PATTERN                              -P
//   patcher=PATH                               the command, which analyses for -P
//   args=SPECS:PATTERN                         -A and -R; SPECS: see arg_spec_code.hpp
//   when=CONDITION:PATTERN                     --snapshot-when; see call_condition.hpp
//   autoargs=yes                               -a
//   depth=N, time=NS, size=BYTES               -D, -t, -Z
//   file=DEVICE:INODE                          the file of the functions that follow
//   function=ADDRESS:SPECS:NAMES:RETVAL_NAMES  the types of a function of that file
//   callee=NAME:SPECS:NAMES:RETVAL_NAMES       the types of a library's function
//
// DEVICE, INODE and ADDRESS are hexadecimal, other numbers decimal. In a field "%XX" is
// the byte of that hexadecimal number. "%", ";" and the zero byte are always written that
// way, and so is ":" except in an option's last field.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "src/protocol/call_filter_text.hpp"
#include "src/shim_protocol/environment.hpp"

namespace arctrace::shim {

// The longest text: all that the kernel lets a variable have after "ARCTRACE_OPTIONS=".
inline constexpr size_t kOptionsTextMax =
    kVariableBytesMax - (sizeof kOptionsVariable - 1) - sizeof '=' - sizeof '\0';
inline constexpr size_t kPatternsMax = 64;  // one bit each in the control page's word
inline constexpr size_t kTypesMax = 2048;   // functions whose types are passed on

enum class LibraryCalls : uint8_t {
  kNone,
  kProgram,  // the calls that the program itself makes
  kAll       // the calls between libraries as well
};

// Begins a pattern that is a regular expression.
inline constexpr std::string_view kRegexMark = kFilterRegex;

// A pattern of the user's: an extended regular expression after kRegexMark, else a glob
// (src/base/glob.hpp). kModule patterns match the names of files, all others those of
// functions (src/base/function_names.hpp).
struct Pattern {
  enum class Kind : uint8_t {
    kFilter,
    kNotrace,
    kModule,
    kArgs,
    kEntryOnly,
    kPatch,
    kWhen
  };
  Kind kind;
  const char* text;
  // For kArgs: see arg_spec_code.hpp, or one of the next two characters. For kWhen: see
  // call_condition.hpp. Else null.
  const char* arg_specs = nullptr;
};

// A pattern's arg_specs if the types of the functions that it matches determine them.
inline constexpr char kTypedArgs = 'A';
inline constexpr char kTypedRetval = 'R';

// A function with compiled-in hooks, by its address in the file of its module.
struct FileAddress {
  uint64_t device, inode;
  uint64_t address;
  bool operator==(const FileAddress&) const = default;
};

// The arguments and the return value of a function, by the types that the command has
// read.
struct FunctionTypes {
  FileAddress at;
  const char* name;       // the linker's name of a library's function, or null
  const char* arg_specs;  // see arg_spec_code.hpp
  // The names of the arguments, "a,b", and of an enumeration's values, "a/1=one", as
  // SPEC.md defines them; for the return value "/1=one". Empty: not known.
  const char* arg_names;
  const char* retval_names;
};

// The decoded options. They take some 240 KiB, so they must be static or on the heap.
struct ShimOptions {
  LibraryCalls library_calls = LibraryCalls::kNone;
  bool auto_args = false;  // record the arguments of the functions in auto_args.hpp
  uint32_t depth_max = 0;  // 0: any
  uint64_t min_ns = 0;     // 0: any
  uint64_t size_min = 0;   // of a function's code, in bytes; 1 takes all, as 0 does
  const char* patcher = nullptr;  // null: no functions are patched
  size_t pattern_count = 0;
  size_t type_count = 0;
  Pattern patterns[kPatternsMax] = {};
  FunctionTypes types[kTypesMax] = {};
  char texts[kOptionsTextMax + 1] = {};  // what the pointers above point to

  // Whether arguments or return values of any function are recorded, or calls have
  // conditions.
  bool records_args() const {
    bool found = auto_args;
    for (size_t i = 0; i < pattern_count; ++i) {
      found = found || patterns[i].kind == Pattern::Kind::kArgs ||
              patterns[i].kind == Pattern::Kind::kWhen;
    }
    return found;
  }
  // Whether functions are filtered out by their sizes. No code has fewer bytes than one:
  // `-Z 1` is for functions that are patched, and must not cost each call a filter.
  bool filters_sizes() const { return size_min > 1; }
  // Whether any call may be filtered out.
  bool filters() const {
    bool found = depth_max != 0 || min_ns != 0 || filters_sizes();
    for (size_t i = 0; i < pattern_count; ++i) {
      found = found || (patterns[i].kind != Pattern::Kind::kArgs &&
                        patterns[i].kind != Pattern::Kind::kEntryOnly &&
                        patterns[i].kind != Pattern::Kind::kPatch &&
                        patterns[i].kind != Pattern::Kind::kWhen);
    }
    return found;
  }
  // Whether functions have flags by their names: those of the filter, or others.
  bool has_flags() const {
    bool found = filters();
    for (size_t i = 0; i < pattern_count; ++i) {
      found = found || patterns[i].kind == Pattern::Kind::kEntryOnly;
    }
    return found;
  }
};

// Decodes `text` (null: no options) into `options`, which must be newly constructed. The
// text is untrusted, because a user may have set it: unknown options and those beyond the
// limits above are skipped, and a text longer than kOptionsTextMax is ignored altogether.
// Uses neither libc nor memory, and takes time in proportion to the text.
void decode_options(const char* text, ShimOptions& options);

}  // namespace arctrace::shim
