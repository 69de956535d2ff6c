// Completions for fish.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_replace.h>
#include <absl/strings/string_view.h>

#include "reader/cli/manual/option_table.hpp"

namespace arctrace::cli {
namespace {

std::string single_quoted(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

// Returns the options before the command whose value may be a word of its own.
std::string value_options(const std::vector<CommandRow>& commands) {
  std::string out;
  for (const CommandRow& command : commands) {
    if (!command.name.empty()) continue;
    for (const OptionRow& option : command.options) {
      if (option.is_positional || option.value.empty() || option.is_optional) continue;
      absl::StrAppend(&out, " ", absl::StrJoin(option.names, " "));
    }
  }
  return out;
}

std::string fish_option(const OptionRow& option, const std::string& condition) {
  if (option.is_positional) return "";
  std::string line = absl::StrCat("complete -c arctrace -n ", single_quoted(condition));
  for (const std::string& name : option.names) {
    absl::StrAppend(&line, name.starts_with("--") ? absl::StrCat(" -l ", name.substr(2))
                                                  : absl::StrCat(" -s ", name.substr(1)));
  }
  if (!option.value.empty() && !option.is_optional) {
    switch (option.kind) {
      case ValueKind::kWord:
        absl::StrAppend(&line, " -xa ", single_quoted(absl::StrJoin(option.words, " ")));
        break;
      case ValueKind::kFile:
        absl::StrAppend(&line, " -rF");
        break;
      case ValueKind::kDirectory:
        absl::StrAppend(&line, " -xa '(__fish_complete_directories)'");
        break;
      case ValueKind::kSession:
        absl::StrAppend(&line, " -xa '(__arctrace_lines sessions)'");
        break;
      case ValueKind::kFunction:
        absl::StrAppend(&line, " -xa '(__arctrace_functions)'");
        break;
      case ValueKind::kGroup:
        absl::StrAppend(&line, " -xa '(__fish_complete_groups)'");
        break;
      default:
        absl::StrAppend(&line, " -x");
    }
  }
  return absl::StrCat(line, " -d ", single_quoted(short_text(option.description)), "\n");
}

std::string fish_argument(const OptionRow& option, const std::string& condition) {
  if (!option.is_positional) return "";
  const std::string line =
      absl::StrCat("complete -c arctrace -n ", single_quoted(condition));
  switch (option.kind) {
    case ValueKind::kTrace:
      return absl::StrCat(line, " -F\n", line, " -a '(__arctrace_lines sessions)'\n");
    case ValueKind::kSession:
      return absl::StrCat(line, " -a '(__arctrace_lines sessions)'\n");
    case ValueKind::kFunction:
      return absl::StrCat(line, " -a '(__arctrace_functions)'\n");
    case ValueKind::kCommand:
      return absl::StrCat(line, " -xa '(__fish_complete_subcommand)'\n");
    default:
      return "";
  }
}

constexpr const char* kFish = R"sh(
function __arctrace_lines
    set -l words (commandline -opc)
    $words[1] complete $argv 2>/dev/null
end
function __arctrace_functions
    set -l trace arctrace.data
    for word in (commandline -op)[2..-1]
        test -f $word; and set trace $word
    end
    __arctrace_lines functions $trace
end
# The command that the line names; nothing: none yet.
function __arctrace_named
    set -l words (commandline -opc)
    set -e words[1]
    while set -q words[1]
        if contains -- $words[1] $__arctrace_value_options
            set -q words[2]; and set -e words[2]
        else if not string match -q -- '-*' $words[1]
            echo $words[1]
            return
        end
        set -e words[1]
    end
end
function __arctrace_command
    contains -- $argv[1] (__arctrace_named)
end
function __arctrace_no_command
    not count (__arctrace_named) >/dev/null
end
complete -c arctrace -f
)sh";

}  // namespace

std::string fish_completion(const std::vector<CommandRow>& commands) {
  std::string out = absl::StrCat(kCompletionHead, "set -g __arctrace_value_options",
                                 value_options(commands), "\n", kFish);
  for (const CommandRow& command : commands) {
    if (command.name.empty()) {
      for (const OptionRow& option : command.options) {
        absl::StrAppend(&out, fish_option(option, "__arctrace_no_command"));
      }
      continue;
    }
    const std::string condition = absl::StrCat("__arctrace_command ", command.name);
    absl::StrAppend(&out, "complete -c arctrace -n __arctrace_no_command -a ",
                    command.name, " -d ", single_quoted(command.description), "\n");
    for (const OptionRow& option : command.options) {
      absl::StrAppend(&out, fish_option(option, condition),
                      fish_argument(option, condition));
    }
    if (command.name == "help") {
      absl::StrAppend(&out, "complete -c arctrace -n ", single_quoted(condition), " -a ",
                      single_quoted(command_names(commands)), "\n");
    }
  }
  return out;
}

}  // namespace arctrace::cli
