// "did you mean ...?"
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace arctrace::cli {

// "; did you mean \"a\" or \"b\"?" of the first few names that are a slip of the finger
// away from `name`, or begin with it; empty if there are none.
std::string near_names(std::string_view name, const std::vector<std::string>& names);

}  // namespace arctrace::cli
