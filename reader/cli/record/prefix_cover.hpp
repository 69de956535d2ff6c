// Few globs for many names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace arctrace::cli {

// The glob that stands for this name only.
std::string exactly(std::string_view name);

enum class Coverage : uint8_t {
  kForbidden,  // no glob may match it
  kAllowed,
  kWanted  // one has to
};
struct CoveredName {
  std::string_view name;
  Coverage coverage;
};

// Globs that are names, or beginnings of names with a "*" behind, as few as can be.
// REQUIRES: `names` are sorted, and differ.
std::vector<std::string> prefix_cover(const std::vector<CoveredName>& names);

}  // namespace arctrace::cli
