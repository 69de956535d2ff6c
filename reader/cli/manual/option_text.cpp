#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_replace.h>
#include <absl/strings/str_split.h>
#include <absl/strings/string_view.h>
#include <absl/strings/strip.h>

#include <algorithm>

#include "reader/cli/manual/option_table.hpp"

namespace arctrace::cli {
namespace {

// Returns a text of one line without anything that scdoc takes for its own.
std::string plain(absl::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool is_first_of_markup = out.empty() && absl::StrContains("#-|[]:.'`", c);
    if (is_first_of_markup || c == '*' || c == '_' || c == '\\' || c == '<' || c == '>' ||
        c == '~' || c == '^') {
      out += '\\';
    }
    out += c;
  }
  return out;
}

std::string bold(absl::string_view text) { return absl::StrCat("*", plain(text), "*"); }
std::string underlined(absl::string_view text) {
  return absl::StrCat("_", plain(text), "_");
}

// Words that can be the value are typed as they are; other values are names.
std::string value_text(const OptionRow& option) {
  if (option.words.empty()) return underlined(option.value);
  std::vector<std::string> words;
  for (const std::string& word : option.words) words.push_back(bold(word));
  return absl::StrJoin(words, "|");
}

// Formats paragraphs; those with indented lines stay as they are.
std::string paragraphs(const std::string& text) {
  std::string out;
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(text, "\n\n"))) {
    std::vector<std::string> prose;
    std::vector<std::string> table;
    const auto end_table = [&] {
      if (!table.empty()) {
        absl::StrAppend(&out, "```\n", absl::StrJoin(table, "\n"), "\n```\n\n");
      }
      table.clear();
    };
    const auto end_prose = [&] {
      if (!prose.empty()) {
        absl::StrAppend(&out, plain(absl::StrJoin(prose, " ")), "\n\n");
      }
      prose.clear();
    };
    for (const absl::string_view line : absl::StrSplit(part, '\n')) {
      if (absl::StartsWith(line, "  ")) {
        end_prose();
        table.emplace_back(line);
      } else if (!line.empty()) {
        end_table();
        prose.emplace_back(line);
      }
    }
    end_prose();
    end_table();
  }
  return out;
}

std::string option_entry(const OptionRow& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) names.push_back(bold(name));
  std::string head = absl::StrJoin(names, ", ");
  if (option.is_positional) {
    head = underlined(option.value);
  } else if (option.is_optional && !option.value.empty()) {
    absl::StrAppend(&head, "\\[=", value_text(option), "]");
  } else if (!option.value.empty()) {
    absl::StrAppend(&head, " ", value_text(option));
  }
  std::string text = option.description;
  text[0] = absl::ascii_toupper(static_cast<unsigned char>(text[0]));
  if (!option.default_value.empty()) {
    absl::StrAppend(&text, ". Default: ", option.default_value);
  }
  if (!text.ends_with('.')) text += '.';
  return absl::StrCat(head, "\n\t", plain(text), "\n\n");
}

std::string options_text(const CommandRow& command) {
  std::vector<std::string> groups;
  for (const OptionRow& option : command.options) {
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end()) {
      groups.push_back(option.group);
    }
  }
  std::string out;
  for (const std::string& group : groups) {
    const bool is_usual = group == "Options" || group == "Positionals";
    if (!is_usual) absl::StrAppend(&out, "## ", plain(group), "\n\n");
    for (const OptionRow& option : command.options) {
      if (option.group == group) absl::StrAppend(&out, option_entry(option));
    }
  }
  return out;
}

std::string synopsis(const CommandRow& command) {
  std::string text = bold("arctrace");
  if (!command.name.empty()) absl::StrAppend(&text, " ", bold(command.name));
  absl::StrAppend(&text, " \\[_OPTION_...]");
  if (command.name.empty()) absl::StrAppend(&text, " _COMMAND_ \\[_ARGUMENT_...]");
  for (const OptionRow& option : command.options) {
    if (!option.is_positional) continue;
    if (option.kind == ValueKind::kCommand) {
      absl::StrAppend(&text, " \\[*\\--*] _COMMAND_ \\[_ARGUMENT_...]");
    } else if (option.is_required) {
      absl::StrAppend(&text, " ", underlined(option.value));
    } else {
      absl::StrAppend(&text, " \\[", underlined(option.value), "]");
    }
    if (option.is_repeated && option.kind != ValueKind::kCommand) {
      absl::StrAppend(&text, "...");
    }
  }
  return text;
}

std::string page_name(const CommandRow& command) {
  return command.name.empty() ? "arctrace" : absl::StrCat("arctrace-", command.name);
}

}  // namespace

std::string command_page(const CommandRow& command, const std::vector<CommandRow>& all) {
  std::string summary = command.description;
  while (summary.ends_with('.')) summary.pop_back();
  std::string out =
      absl::StrCat(page_name(command), "(1)\n\n# NAME\n\n", page_name(command), " - ",
                   plain(summary), "\n\n# SYNOPSIS\n\n", synopsis(command), "\n\n");
  if (command.name.empty()) {
    absl::StrAppend(&out, "# COMMANDS\n\n");
    for (const CommandRow& each : all) {
      if (each.name.empty()) continue;
      absl::StrAppend(&out, "*arctrace-", each.name, "*(1)\n\t", plain(each.description),
                      "\n\n");
    }
  }
  if (!command.notes.empty()) {
    absl::StrAppend(&out, "# DESCRIPTION\n\n", paragraphs(command.notes));
  }
  return absl::StrCat(out, "# OPTIONS\n\n", options_text(command));
}

std::string config_keys(const std::vector<CommandRow>& all) {
  std::string out;
  for (const CommandRow& command : all) {
    std::vector<std::string> keys;
    for (const OptionRow& option : command.options) {
      if (option.is_positional || command.name.empty() ||
          option.names.back() == "--help") {
        continue;
      }
      keys.push_back(absl::StrCat(bold(option.names.back().substr(2)), "=",
                                  option.value.empty() ? "*true*" : value_text(option)));
    }
    if (keys.empty()) continue;
    absl::StrAppend(&out, "## ", plain(command.name), "\n\n", absl::StrJoin(keys, ",\n"),
                    "\n\n");
  }
  return out;
}

std::string header_functions(const std::string& header) {
  std::string out;
  std::string comment;      // of the lines just before, as they are in the header
  std::string declaration;  // the one that has begun
  bool is_in_comment = false;
  bool is_in_type = false;  // the declaration is that of a struct or enum
  const std::vector<std::string> lines = absl::StrSplit(header, '\n');
  for (const std::string& line : lines) {
    const bool begins_comment = absl::StartsWith(line, "/*");
    if (begins_comment) comment.clear();
    if (begins_comment || is_in_comment) {
      absl::string_view text = line;
      is_in_comment = !absl::ConsumeSuffix(&text, "*/");
      if (begins_comment || absl::StartsWith(text, " *")) text.remove_prefix(2);
      if (absl::ConsumePrefix(&text, " ---- ")) {
        const absl::string_view title = text.substr(0, text.find(" --"));
        absl::StrAppend(&out, "# ", absl::AsciiStrToUpper(title), "\n\n");
        text = "";
      }
      absl::StrAppend(&comment, absl::StripTrailingAsciiWhitespace(text), "\n");
      continue;
    }
    const bool begins_type =
        (absl::StartsWith(line, "struct ") || absl::StartsWith(line, "enum ")) &&
        absl::EndsWith(line, " {");
    const bool begins = absl::StartsWith(line, "ARCTRACE_API ") ||
                        absl::StartsWith(line, "extern ARCTRACE_API ") ||
                        absl::StartsWith(line, "ARCTRACE_READER_API ") || begins_type;
    is_in_type = is_in_type || begins_type;
    if (line.empty()) {
      // A comment that stands alone is about the whole group.
      absl::StripAsciiWhitespace(&comment);
      if (!comment.empty() && !out.empty()) {
        absl::StrAppend(&out, "```\n", comment, "\n```\n\n");
      }
      comment.clear();
    }
    if (!begins && declaration.empty()) continue;
    absl::StrAppend(
        &declaration, declaration.empty() ? "" : "\n",
        absl::StrReplaceAll(line, {{"ARCTRACE_API ", ""}, {"ARCTRACE_READER_API ", ""}}));
    if (is_in_type ? line != "};" : !absl::StrContains(line, ";")) continue;
    is_in_type = false;
    absl::StrAppend(&out, "```\n", declaration, "\n```\n\n");
    if (absl::StrContains(comment, "\n")) {
      absl::StrAppend(&out, "```\n",
                      absl::StrReplaceAll("\n" + comment, {{"\n", "\n   "}}),
                      "\n```\n\n");
    }
    comment.clear();
    declaration.clear();
  }
  return out;
}

std::string record_types(const std::string& spec) {
  std::string out;
  bool is_in_table = false;
  const std::vector<std::string> lines = absl::StrSplit(spec, '\n');
  for (const std::string& line : lines) {
    const std::vector<std::string> cells = absl::StrSplit(line, " | ");
    is_in_table = absl::StartsWith(line, is_in_table ? "|" : "| type | name | body |");
    if (!is_in_table || cells.size() != 4 ||
        !absl::ascii_isdigit(static_cast<unsigned char>(line[2])))
      continue;
    std::string note = cells[3].substr(0, cells[3].rfind('|'));
    absl::StripAsciiWhitespace(&note);
    absl::StrAppend(&out, bold(cells[1]), " (", plain(cells[0].substr(2)), ")\n\t",
                    plain(cells[2]), note.empty() ? "" : absl::StrCat(". ", plain(note)),
                    "\n\n");
  }
  return out;
}

}  // namespace arctrace::cli
