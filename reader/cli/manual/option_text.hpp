// Manual pages in scdoc's language, as far as they can be made from the command line's
// tables, the public header and SPEC.md.
#pragma once

#include <string>
#include <vector>

#include "reader/cli/manual/option_table.hpp"

namespace arctrace::cli {

// The page of a command, up to its options: the part that is written by hand follows.
std::string command_page(const CommandRow& command, const std::vector<CommandRow>& all);

// What a file of options may have, for arctrace-config(5).
std::string config_keys(const std::vector<CommandRow>& all);

// The groups of functions, structs and enums in the text of a header, each with its
// comment, for libarctrace(3) and libarctrace-reader(3).
std::string header_functions(const std::string& header);

// The table of record types in the text of SPEC.md, for arctrace-format(5).
std::string record_types(const std::string& spec);

}  // namespace arctrace::cli
