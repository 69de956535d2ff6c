// Arguments and return values as the user of -A and -R writes them:
// PATTERN@arg1/s,arg2/i32,fparg1/f64 and PATTERN@retval/p. A PATTERN alone means what the
// types of the functions say.
#pragma once

#include <optional>
#include <string>

#include "src/recording/patterns/glob_problem.hpp"

namespace arctrace::recording {

// What is wrong after the pattern of `spec`; `of_result`: it must be of -R, not of -A.
std::optional<Problem> arg_spec_problem(const std::string& spec, bool of_result);

// The spec as the shim takes it (Pattern::arg_specs). REQUIRES: no problem.
std::string encoded_arg_specs(const std::string& spec, bool of_result);

}  // namespace arctrace::recording
