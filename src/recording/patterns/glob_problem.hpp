// What is wrong with globs (src/base/glob.hpp) that people write.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

namespace arctrace::recording {

using Problem = std::pair<size_t, std::string>;  // the offset, and what is wrong

// What is wrong with `pattern` as a glob, in one line. An empty one matches nothing, and
// is refused as well.
std::optional<Problem> glob_problem(const std::string& pattern);

}  // namespace arctrace::recording
