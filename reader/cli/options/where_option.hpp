// --where: conditions on the fields of events.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reader/cli/options/cli11.hpp"
#include "src/recording/patterns/arg_spec.hpp"

namespace arctrace::cli {

// What is wrong with "FIELD OP VALUE", such as "id >= 10", and where; nullopt: nothing.
// The operator is the first of these signs in the text: = == != < <= > >= ~
std::optional<recording::Problem> condition_problem(const std::string& text);

// Adds the option, each of whose values is added to `conditions`, which must outlive
// `app`. `scope`: what the help adds at its end, such as "; with flow"; may be empty.
// `verb`: what is done only with events that meet the conditions: "show" or "record".
CLI::Option* add_where_option(CLI::App& app, std::vector<std::string>& conditions,
                              const std::string& scope, const char* verb = "show");

}  // namespace arctrace::cli
