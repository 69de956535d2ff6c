// What the command tells the shim about the functions of a module that are to be
// patched. It stands in an ELF image (src/recorder/patch_image/patch_image.hpp), which
// the loader maps at the addresses for which it was made. Both sides come from one build,
// so this is no stable interface.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arctrace::shim {

// The command's verb that makes an image. Its arguments are the numbers of descriptors:
// of the module's file, of the process' /proc/PID/maps, and of an empty file for the
// image; the address of the module's file address 0, hexadecimal; and the name of its
// file as patterns ask for it (patch_pattern.hpp), which is empty for the program.
inline constexpr char kPatchVerb[] = "__patch";

inline constexpr char kPatchMagic[8] = {'A', 'R', 'C', 'T', 'P', 'T', 'C', 'H'};
// Of the table in the image, from its first byte on: after the ELF headers.
inline constexpr size_t kPatchTableOffset = 1024;
// The file from which the loader maps an image, by which its memory is known.
inline constexpr char kPatchFileName[] = "arctrace";
// The whole image.
inline constexpr uint64_t kPatchImageMax = uint64_t{256} << 20;

// Of how many modules of a process functions are patched, whether they are loaded at the
// same time or not.
inline constexpr uint32_t kPatchedModulesMax = 256;

inline constexpr size_t kPatchJumpSize = 5;
inline constexpr size_t kPatchCoveredMax = 4 + 15;  // whole instructions

// All addresses are absolute.
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
  uint64_t left_size;    // of the PatchLeft that follow the table in the file, in bytes
  uint64_t again_count;  // of the PatchAgain that follow them
  uint64_t matched;  // patterns that a function matched: as the control page counts them
  uint32_t function_count;
  uint32_t refusal;  // enum arctrace_patch_verdict, if there are no functions; else 0
};
static_assert(sizeof(PatchTable) == 120);

// Functions that were left alone for one reason. Then listed * (uint64_t address).
struct PatchLeft {
  uint32_t verdict;  // enum arctrace_patch_verdict
  uint32_t count, listed, filler;
};
// More are in another one.
inline constexpr uint32_t kPatchListedMax = 64;

// A function that was patched for an earlier recording of the process, by another image,
// and is to be recorded again.
struct PatchAgain {
  uint64_t function;
  uint64_t is_named;  // as in PatchedFunction
};

struct PatchedFunction {
  uint64_t function;  // its first instruction
  uint64_t at;      // where the jump is written: there, or after what stays in its place
  uint64_t copy;    // the copy of what the jump covers, with a jump behind it
  uint64_t size;    // of the function, in bytes
  uint32_t name;    // from PatchTable::names on; an empty one: not known
  uint8_t covered;  // bytes
  uint8_t entry_only;
  unsigned char jump[kPatchJumpSize];
  unsigned char original[kPatchCoveredMax];  // what must stand there
  uint8_t is_named;                          // a pattern without wildcards asks for it
  // What takes the first instruction back, which stays in its place, has so many bytes;
  // 0: nothing is taken back. The copy begins with it, too.
  uint8_t undo_size;
};
static_assert(sizeof(PatchedFunction) == 64);

// The jump at a function's entry leads to another one, through its gate: to the code that
// has its calls recorded, which comes before the copy and has so many bytes, or past that
// to the copy, as in the file.
inline constexpr uint64_t kPatchRecordSize = 18;

// What the gate of a function that is recorded holds, and of one that is not.
inline uint64_t gate_when_on(const PatchedFunction& function) {
  return function.copy - kPatchRecordSize - function.undo_size;
}
inline uint64_t gate_when_off(const PatchedFunction& function) {
  return function.copy + (function.undo_size == 0 ? 0 : function.at - function.function);
}

// What the image's code reads, and nobody writes once functions are patched.
struct PatchSlots {
  uint64_t begins;      // the shim's code for a call
  uint64_t entries[1];  // the shim's entry of each function
};

}  // namespace arctrace::shim
