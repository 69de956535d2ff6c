// "did you mean ...?"
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace arctrace::cli {

inline constexpr std::string_view kRegexMark = "re:";  // before a pattern; else a glob

// "; did you mean \"a\" or \"b\"?" of the first few names that are a slip of the finger
// away from `name`, or begin with it; empty if there are none.
std::string near_names(std::string_view name, const std::vector<std::string>& names);

// The pattern without what stands for other characters.
std::string plain_part(std::string_view pattern);

// A C++ name as people write it, without the parameters.
std::string without_parameters(std::string name);

}  // namespace arctrace::cli
