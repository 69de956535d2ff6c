// The words of the options protocol (options.hpp), for its encoder and its decoder.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arctrace::shim {

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

// In the order of OptionKey.
inline constexpr const char* kOptionKeys[] = {
    "libcall=",  "filter=", "notrace=", "module=", "entryonly=", "patch=",
    "patcher=",  "args=",   "when=",    "file=",   "function=",  "callee=",
    "autoargs=", "depth=",  "time=",    "size="};
static_assert(kOptionKeys[static_cast<size_t>(OptionKey::kSize)][0] == 's');

// In the order of LibraryCalls.
inline constexpr const char* kLibraryCallWords[] = {"none", "program", "all"};

inline constexpr char kYes[] = "yes";

}  // namespace arctrace::shim
