// The command line as plain data, read from CLI11's objects, and what is made from it:
// the manual's pages (option_text.cpp) and completions for shells (completions.cpp,
// fish_completion.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reader/cli/options/options.hpp"

namespace arctrace::cli {

// What can stand for an option's value, or a positional argument.
enum class ValueKind : uint8_t {
  kNone,   // it has no value
  kText,   // anything
  kWord,   // one of `words`
  kFile,   // of any kind
  kTrace,  // a trace file, or a session
  kDirectory,
  kSession,
  kFunction,  // of the trace that the command reads
  kGroup,     // of users
  kCommand,   // a command of the system, with its arguments
  kSubcommand,
};

struct OptionRow {
  std::vector<std::string> names;  // "-b", "--buffer-size"; a positional's only name
  std::string value;               // as the help calls it; empty: it has none
  std::string default_value;       // empty: none is shown
  std::string description;
  std::string group;
  ValueKind kind = ValueKind::kNone;
  std::vector<std::string> words;
  bool is_optional = false;  // the value may be omitted
  bool is_repeated = false;
  bool is_positional = false;
  bool is_required = false;
};

struct CommandRow {
  std::string name;  // empty: arctrace itself
  std::string description;
  std::string notes;               // what the help says below the options
  std::vector<OptionRow> options;  // positional arguments too
};

// A row for `root`, then one for each subcommand that the help shows.
std::vector<CommandRow> read_commands(const CLI::App& root);

// Manual pages in scdoc's language, as far as they can be made from the command line's
// tables, the public header and SPEC.md.

// The page of a command, up to its options: the part that is written by hand follows.
std::string command_page(const CommandRow& command, const std::vector<CommandRow>& all);

// What a file of options may have, for arctrace-config(5).
std::string config_keys(const std::vector<CommandRow>& all);

// The groups of functions, structs and enums in the text of a header, each with its
// comment, for libarctrace(3) and libarctrace-reader(3).
std::string header_functions(const std::string& header);

// The table of record types in the text of SPEC.md, for arctrace-format(5).
std::string record_types(const std::string& spec);

// Completions for shells, made from the command line's tables. What only the running
// system knows, sessions and functions, they get from arctrace complete.
std::string bash_completion(const std::vector<CommandRow>& commands);
std::string zsh_completion(const std::vector<CommandRow>& commands);
std::string fish_completion(const std::vector<CommandRow>& commands);

// What the completions share: their first line, the first sentence or clause of a
// description, for which a line has space, and the names of the commands.
inline constexpr const char* kCompletionHead =
    "# Made by the build from the options of the command: do not edit.\n";
std::string short_text(const std::string& description);
std::string command_names(const std::vector<CommandRow>& commands);

}  // namespace arctrace::cli
