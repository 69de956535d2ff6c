// Arguments and results in the user's words: PATTERN@arg1/s,arg2/i32,fparg1/f64 and
// PATTERN@retval/p; PATTERN alone: as its functions' types have them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

namespace arctrace::cli {

using Problem = std::pair<size_t, std::string>;  // the place, and what is wrong

// What is wrong behind the pattern of `spec`; `of_result`: it must be of -R, not of -A.
std::optional<Problem> value_spec_problem(const std::string& spec, bool of_result);

// A value for the shim (writer_shim/filter/arg_specs.hpp) that never says that the call
// failed.
std::string encoded_value(unsigned argument, char kind, unsigned bytes);

// All values for it. REQUIRES: no problem.
std::string encoded_values(const std::string& spec, bool of_result);

}  // namespace arctrace::cli
