// Finds few globs that match many names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace arctrace::recording {

// The glob that matches only this name.
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

// The fewest globs, each a name or a prefix of names followed by "*", that match all
// names that they have to, and none that they must not. REQUIRES: `names` are sorted and
// unique.
std::vector<std::string> prefix_cover(const std::vector<CoveredName>& names);

}  // namespace arctrace::recording
