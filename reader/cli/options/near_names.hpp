// Suggestions for names that were mistyped: "did you mean ...?"
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace arctrace::cli {

// "; did you mean \"a\" or \"b\"?" for the first few of `names` that differ from `name`
// by a few letters, or begin with it; empty if there are none.
std::string near_names(std::string_view name, const std::vector<std::string>& names);

// What is wrong with the first of `globs` that matches none of these names of functions,
// with names that look like it; empty if each matches one.
std::string unmatched_glob(const std::vector<std::string>& globs,
                           const std::vector<std::string>& functions);

// The pattern without its wildcards and operators.
std::string plain_part(std::string_view pattern);

}  // namespace arctrace::cli
