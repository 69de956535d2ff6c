// The patterns of `record -P`, and the table by which the command tells the shim which
// functions of a module are to be patched. Both sides come from one build, so this is no
// stable interface.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "src/base/glob.hpp"

namespace arctrace::shim {

// A pattern of `record -P`: of functions of the program, or after kLibraryMark, of a
// library:
//
//   PATTERN               functions of the program that match
//   lib:LIBRARY           all functions of libraries that match
//   lib:LIBRARY:PATTERN   functions of such libraries that match
//
// LIBRARY is a glob for the name of the library's file, or for the part of that before
// ".so".
inline constexpr std::string_view kLibraryMark = "lib:";

struct PatchPattern {
  std::string_view library;   // empty: it is for the program
  std::string_view function;  // a pattern as for other options
};

namespace detail {

// These functions replace those of std::string_view, which call libc, or throw.
constexpr std::string_view first_of_text(std::string_view text, size_t size) {
  return {text.data(), size};
}
constexpr std::string_view rest_of_text(std::string_view text, size_t from) {
  return {text.data() + from, text.size() - from};
}

constexpr size_t find_text(std::string_view text, std::string_view wanted) {
  for (size_t i = 0; i + wanted.size() <= text.size(); ++i) {
    size_t same = 0;
    while (same < wanted.size() && text[i + same] == wanted[same]) ++same;
    if (same == wanted.size()) return i;
  }
  return text.size();
}

}  // namespace detail

constexpr PatchPattern split_patch_pattern(std::string_view text) {
  if (detail::find_text(text, kLibraryMark) != 0 || text.empty()) return {{}, text};
  text.remove_prefix(kLibraryMark.size());
  const size_t colon = detail::find_text(text, ":");
  if (colon == text.size()) return {text, "*"};
  return {detail::first_of_text(text, colon), detail::rest_of_text(text, colon + 1)};
}

// `file`: the name of a library's file, without its directory; empty: the program.
inline bool is_for_module(const PatchPattern& pattern, std::string_view file) {
  if (pattern.library.empty() || file.empty()) {
    return pattern.library.empty() && file.empty();
  }
  return glob_matches(pattern.library, file) ||
         glob_matches(pattern.library,
                      detail::first_of_text(file, detail::find_text(file, ".so")));
}

// The command's verb that makes an image. Its arguments are the numbers of descriptors:
// of the module's file, of the process' /proc/PID/maps, and of an empty file for the
// image; the address of the module's file address 0, hexadecimal; and the name of its
// file as patterns ask for it (PatchPattern), which is empty for the program.
inline constexpr char kPatchVerb[] = "__patch";

inline constexpr char kPatchMagic[8] = {'A', 'R', 'C', 'T', 'P', 'T', 'C', 'H'};
// The offset of the table from the image's first byte: after the ELF headers.
inline constexpr size_t kPatchTableOffset = 1024;
// The name of the file from which the loader maps an image, by which its memory is
// recognised.
inline constexpr char kPatchFileName[] = "arctrace";
// The size limit of the whole image.
inline constexpr uint64_t kPatchImageMax = uint64_t{256} << 20;

// The number of modules of a process whose functions are patched, whether they are loaded
// at the same time or not.
inline constexpr uint32_t kPatchedModulesMax = 256;

inline constexpr size_t kPatchJumpSize = 5;
inline constexpr size_t kPatchCoveredMax = 4 + 15;  // the size of whole instructions

// The functions of a module that are to be patched. The table stands in an ELF image
// (src/recorder/patch_image/patch_image.hpp), which the loader maps at the addresses for
// which it was made. All addresses are absolute.
struct PatchTable {
  char magic[8];
  uint64_t bytes;  // of the image's file
  uint64_t low;    // of the image in memory: [low, high)
  uint64_t high;
  uint64_t functions;  // the address of the first PatchedFunction
  uint64_t slots;      // the address of the PatchSlots, which can be written
  uint64_t gates;      // the address of the gates, which can be written, one a function
  uint64_t names;      // the address of the names, zero-terminated, one after the other
  uint64_t names_size;
  uint64_t code_low;  // the module's executable memory
  uint64_t code_high;
  uint64_t skips_size;   // of the PatchSkips that follow the table in the file, in bytes
  uint64_t again_count;  // of the PatchAgain that follow them
  uint64_t matched;  // patterns that a function matched, in the form of the control page
  uint32_t function_count;
  uint32_t refusal;  // enum arctrace_patch_verdict, if there are no functions; else 0
};
static_assert(sizeof(PatchTable) == 120);

// Functions that were skipped for one reason. Then listed * (uint64_t address).
struct PatchSkips {
  uint32_t verdict;  // enum arctrace_patch_verdict
  uint32_t count, listed, filler;
};
// If there are more, they are in another PatchSkips.
inline constexpr uint32_t kPatchListedMax = 64;

// A function that was patched for an earlier recording of the process, by another image,
// and is to be recorded again.
struct PatchAgain {
  uint64_t function;
  uint64_t is_named;  // as in PatchedFunction
};

struct PatchedFunction {
  uint64_t function;  // its first instruction
  uint64_t at;        // where the jump is written: there, or after what stays in place
  uint64_t copy;      // a copy of the instructions under the jump, with a jump behind it
  uint64_t size;      // of the function, in bytes
  uint32_t name;      // from PatchTable::names on; an empty one: not known
  uint8_t covered;    // bytes
  uint8_t entry_only;
  unsigned char jump[kPatchJumpSize];
  unsigned char original[kPatchCoveredMax];  // the bytes that must be there
  uint8_t is_named;                          // a pattern without wildcards asks for it
  // The size of the code that undoes the first instruction, which stays in place; 0: it
  // is not undone. The copy begins with that instruction, too.
  uint8_t undo_size;
};
static_assert(sizeof(PatchedFunction) == 64);

// The jump at a function's entry leads to another jump, through the function's gate: to
// the code that has its calls recorded, which is before the copy and has this size, or
// past it to the copy, as in the file.
inline constexpr uint64_t kPatchRecordSize = 18;

// The value of the gate of a function that is recorded, and of one that is not.
inline uint64_t gate_when_on(const PatchedFunction& function) {
  return function.copy - kPatchRecordSize - function.undo_size;
}
inline uint64_t gate_when_off(const PatchedFunction& function) {
  return function.copy + (function.undo_size == 0 ? 0 : function.at - function.function);
}

// Words that the image's code reads, and that nobody writes once functions are patched.
struct PatchSlots {
  uint64_t begins;      // the shim's code for a call
  uint64_t entries[1];  // the shim's entry of each function
};

}  // namespace arctrace::shim
