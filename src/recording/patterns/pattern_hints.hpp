// What is said of a pattern of functions that matches none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace arctrace::recording {

// What is wrong with the first of `globs` that matches none of these names of functions,
// with names that look like it; empty if each matches one.
std::string unmatched_glob(const std::vector<std::string>& globs,
                           const std::vector<std::string>& functions);

// The pattern without its wildcards and operators.
std::string plain_part(std::string_view pattern);

}  // namespace arctrace::recording
