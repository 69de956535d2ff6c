// --where: conditions on the fields of events.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "reader/cli/options/arg_spec.hpp"
#include "reader/cli/options/cli11.hpp"
#include "reader/trace/event_filter.hpp"

namespace arctrace::cli {

// "FIELD OP VALUE", such as "id >= 10", or what is wrong with the text and where. The
// operator is the first of these signs in the text: = == != < <= > >= ~
std::variant<reader::FieldCondition, Problem> parse_field_condition(
    const std::string& text);

// Adds the option, each of whose values is added to `conditions`, which must outlive
// `app`. `scope`: what the help adds at its end, such as "; with flow"; may be empty.
CLI::Option* add_where_option(CLI::App& app,
                              std::vector<reader::FieldCondition>& conditions,
                              const std::string& scope);

}  // namespace arctrace::cli
