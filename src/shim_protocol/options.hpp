// The protocol by which `arctrace record` gives the shim its options, in the environment
// variable ARCTRACE_OPTIONS. The command encodes the text (OptionsEncoder) and the shim
// decodes it (decode_options). Both come from one build, so the text is not a stable
// interface, and both are freestanding, so that they are compiled alike.
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
//   when=CONDITION:PATTERN                     --snapshot-when; see arg_spec_code.hpp
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
#include <initializer_list>
#include <string_view>

#include "src/protocol/live_filter.hpp"

namespace arctrace::shim {

// The environment variables by which `arctrace record` passes its session to the programs
// that it starts, and by which a traced program passes it on to those that it starts
// itself.

inline constexpr char kSessionVariable[] = "ARCTRACE_SESSION";  // the buffer's path
inline constexpr char kOptionsVariable[] = "ARCTRACE_OPTIONS";  // see options.hpp
inline constexpr char kPreloadVariable[] = "LD_PRELOAD";        // names the shim
// It is set on machines where the shim cannot hook slots that are bound at their first
// call.
inline constexpr char kBindNowVariable[] = "LD_BIND_NOW";

// The size that Linux permits for one "NAME=VALUE", its final zero included, where pages
// have 4 KiB. It permits more where they are larger.
inline constexpr size_t kVariableBytesMax = size_t{128} << 10;

// The size of the longest text: all that the kernel permits a variable after
// "ARCTRACE_OPTIONS=".
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
  // arg_spec_code.hpp. Else null.
  const char* arg_specs = nullptr;
};

// A pattern's arg_specs if they follow from the types of the functions that it matches.
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
  // The tables are first, so that options without patterns touch one page, most likely.
  FunctionTypes types[kTypesMax] = {};
  Pattern patterns[kPatternsMax] = {};
  LibraryCalls library_calls = LibraryCalls::kNone;
  bool auto_args = false;  // record the arguments of the functions in auto_args.hpp
  uint32_t depth_max = 0;  // 0: any
  uint64_t min_ns = 0;     // 0: any
  uint64_t size_min = 0;   // of a function's code, in bytes; 1 takes all, as 0 does
  const char* patcher = nullptr;  // null: no functions are patched
  size_t pattern_count = 0;
  size_t type_count = 0;
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
  // `-Z 1` is about functions that are patched, and must not make each call take the
  // filter.
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

// The words of the options protocol, for its encoder and its decoder.
enum class OptionKey : uint8_t {
  kLibcall,
  kFilter,
  kNotrace,
  kModule,
  kEntryOnly,
  kPatch,
  kPatcher,
  kArgs,
  kWhen,
  kFile,
  kFunction,
  kCallee,
  kAutoArgs,
  kDepth,
  kTime,
  kSize
};

// The keys, in the order of OptionKey.
inline constexpr const char* kOptionKeys[] = {
    "libcall=",  "filter=", "notrace=", "module=", "entryonly=", "patch=",
    "patcher=",  "args=",   "when=",    "file=",   "function=",  "callee=",
    "autoargs=", "depth=",  "time=",    "size="};
static_assert(kOptionKeys[static_cast<size_t>(OptionKey::kSize)][0] == 's');

// The words, in the order of LibraryCalls.
inline constexpr const char* kLibraryCallWords[] = {"none", "program", "all"};

inline constexpr char kYesText[] = "yes";

// Builds the text option by option; decode_options() returns patterns and types in the
// same order. An option that exceeds a limit is not in the text, and overflow() reports
// it. The text must not be used then, because a program with a part of its filter would
// record calls that the user did not ask for. The object takes 128 KiB, so it must be on
// the heap.
class OptionsEncoder {
 public:
  // The first limit that was exceeded.
  enum class Overflow : uint8_t { kNone, kPatterns, kTypes };

  void set_library_calls(LibraryCalls which);
  void set_auto_args();
  void set_patcher(std::string_view path);
  void set_depth_max(uint32_t depth);
  void set_min_ns(uint64_t ns);
  void set_size_min(uint64_t bytes);

  // REQUIRES: `kind` is neither kArgs nor kWhen.
  void add_pattern(Pattern::Kind kind, std::string_view text);
  void add_args(std::string_view arg_specs, std::string_view pattern);
  void add_condition(std::string_view code, std::string_view pattern);

  // The texts of FunctionTypes.
  struct Types {
    std::string_view arg_specs, arg_names, retval_names;
  };
  // The file of the functions that are added next.
  void set_file(uint64_t device, uint64_t inode);
  void add_function(uint64_t address, const Types& types);
  void add_callee(std::string_view name, const Types& types);

  std::string_view text() const { return {text_, size_}; }
  Overflow overflow() const { return overflow_; }

 private:
  void put_option(OptionKey key, std::initializer_list<std::string_view> fields,
                  Overflow if_full);
  // Increments `count`. False: it is `max` already.
  bool has_space(size_t& count, size_t max, Overflow if_full);
  void put_number(OptionKey key, uint64_t number);
  bool put(char c);
  bool put_field(std::string_view field, bool is_last);

  size_t size_ = 0;
  size_t pattern_count_ = 0;
  size_t type_count_ = 0;
  Overflow overflow_ = Overflow::kNone;
  char text_[kOptionsTextMax];
};

}  // namespace arctrace::shim
