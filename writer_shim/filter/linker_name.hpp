// The names that patterns are matched against.
#pragma once

#include <cstddef>
#include <string_view>

namespace arctrace::shim {

inline constexpr size_t kLinkerNameMax = 1024;  // bytes that count

// A linker's name without the suffixes of copies that compilers make of functions (.cold,
// .constprop.0).
inline std::string_view plain_linker_name(const char* name) {
  size_t length = 0;
  while (length < kLinkerNameMax && name[length] != '\0' && name[length] != '.') ++length;
  return {name, length};
}

}  // namespace arctrace::shim
