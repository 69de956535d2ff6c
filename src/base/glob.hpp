// Globs: the patterns of functions, modules and programs that users give to record, ctl,
// report and dump, and those in the control page. The command, the reader, the shim at
// start and hooks, which may run inside malloc, all match them here, byte by byte and
// without libc.
//
//   *       any number of characters, also none
//   ?       one character
//   [abc]   one of these characters; [a-z] one of the range. "]" as the first, and "-" as
//           the first or the last, stand for themselves.
//   [!abc]  one character that is none of these; [^abc] means the same
//   \x      the character x, also within brackets
//
// A glob matches a name as a whole. These are the rules of fnmatch(3) in the C locale
// without flags, except that classes such as [[:alpha:]] do not exist here: they are
// faults.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace arctrace {

// A glob with a fault matches nothing. Takes at most pattern.size() * text.size() steps.
bool glob_matches(std::string_view pattern, std::string_view text);

enum class GlobFault : uint8_t {
  kNone,
  kOpenBracket,    // "[" without "]"
  kLastBackslash,  // "\" without a character after it
  kClass           // "[:", "[." or "[=" within brackets
};
struct GlobCheck {
  GlobFault fault;
  size_t offset;  // of the bracket or the backslash, in bytes
};
// Finds the first fault in `pattern`.
GlobCheck check_glob(std::string_view pattern);

}  // namespace arctrace
