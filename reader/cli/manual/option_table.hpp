// The command line as plain data, read from CLI11's objects, for what is made from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reader/cli/options/cli11.hpp"

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

}  // namespace arctrace::cli
