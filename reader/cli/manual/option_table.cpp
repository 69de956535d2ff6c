#include "reader/cli/manual/option_table.hpp"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>

namespace arctrace::cli {
namespace {

// The words of a type such as "text|json" or "CLASS:{functions,events}", of which only
// one may be the value; none for other types.
std::vector<std::string> words_of(const std::string& type) {
  if (const size_t open = type.find('{'); open != std::string::npos) {
    return absl::StrSplit(type.substr(open + 1, type.find('}') - open - 1), ',');
  }
  if (type.find('|') == std::string::npos) return {};
  return absl::StrSplit(type, '|');
}

bool has_name(const OptionRow& row, const char* name) {
  return std::find(row.names.begin(), row.names.end(), name) != row.names.end();
}

bool reads_calls(const std::string& command) {
  constexpr std::array<const char*, 4> kReaders = {"report", "graph", "dump", "export"};
  return std::find(kReaders.begin(), kReaders.end(), command) != kReaders.end();
}

ValueKind kind_of(const std::string& command, const OptionRow& row) {
  if (row.value.empty()) return ValueKind::kNone;
  if (!row.words.empty()) return ValueKind::kWord;
  if (row.is_positional && absl::StartsWith(row.value, "FILE")) return ValueKind::kTrace;
  if (row.value == "FILE" || row.value == "OUT" || has_name(row, "--config"))
    return ValueKind::kFile;
  if (row.value == "DIR") return ValueKind::kDirectory;
  if (row.value == "GROUP") return ValueKind::kGroup;
  if (row.value == "SESSION" || has_name(row, "--session") ||
      (row.value == "NAME" && row.is_positional && command != "create")) {
    return ValueKind::kSession;
  }
  if (command == "help") return ValueKind::kSubcommand;
  if (absl::StartsWith(row.value, "COMMAND")) return ValueKind::kCommand;
  const bool is_function = has_name(row, "-F") || has_name(row, "-N") ||
                           has_name(row, "--function") || has_name(row, "function");
  if (reads_calls(command) && is_function) return ValueKind::kFunction;
  return ValueKind::kText;
}

OptionRow row_of(const std::string& command, const CLI::Option& option) {
  OptionRow row;
  row.is_positional = option.get_positional();
  if (row.is_positional) {
    row.names.push_back(option.get_name());
  } else {
    for (const std::string& name : option.get_snames()) row.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) row.names.push_back("--" + name);
  }
  if (option.get_items_expected_max() > 0) {
    row.value = option.get_type_name();
    row.words = words_of(row.value);
    if (const size_t colon = row.value.find(":{"); colon != std::string::npos) {
      row.value.resize(colon);
    }
    if (row.value.empty() || row.value == "TEXT") row.value = "VALUE";
    row.is_optional = option.get_items_expected_min() == 0;
  }
  if (has_name(row, "--config")) row.value = "FILE";
  row.default_value = has_name(row, "--config") ? "" : option.get_default_str();
  row.description = option.get_description();
  row.group = option.get_group();
  row.is_repeated = option.get_items_expected_max() > 1;
  row.is_required = option.get_required();
  row.kind = kind_of(command, row);
  return row;
}

CommandRow command_row(const CLI::App& app, const CLI::App& root) {
  CommandRow row;
  const bool is_root = &app == &root;
  if (!is_root) row.name = app.get_name();
  row.description = app.get_description();
  // Commands without notes of their own have the root's.
  if (is_root || app.get_footer() != root.get_footer()) row.notes = app.get_footer();
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    row.options.push_back(row_of(row.name, *option));
  }
  return row;
}

}  // namespace

std::vector<CommandRow> read_commands(const CLI::App& root) {
  std::vector<CommandRow> rows = {command_row(root, root)};
  for (const CLI::App* app : root.get_subcommands([](const CLI::App*) { return true; })) {
    if (!app->get_group().empty()) rows.push_back(command_row(*app, root));
  }
  return rows;
}

}  // namespace arctrace::cli
