// Completions for bash and zsh.
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_replace.h>

#include "reader/cli/manual/option_table.hpp"

namespace arctrace::cli {
namespace {

// Returns the name by which the shells' functions know a kind of value.
std::string kind_text(const OptionRow& option) {
  switch (option.kind) {
    case ValueKind::kNone:
      return "none";
    case ValueKind::kText:
      return "text";
    case ValueKind::kWord:
      return absl::StrCat("words ", absl::StrJoin(option.words, " "));
    case ValueKind::kFile:
      return "file";
    case ValueKind::kTrace:
      return "trace";
    case ValueKind::kDirectory:
      return "directory";
    case ValueKind::kSession:
      return "session";
    case ValueKind::kFunction:
      return "function";
    case ValueKind::kGroup:
      return "group";
    case ValueKind::kCommand:
      return "command";
    case ValueKind::kSubcommand:
      return "subcommand";
  }
  return "text";
}

// The fixed part of bash's completion, which knows the options by _arctrace_options and
// _arctrace_kind.
constexpr const char* kBash = R"sh(
# Adds what the running system knows: one word a line, whatever characters it has. What is
# typed of it may be quoted. Readline replaces only what follows the last ":".
_arctrace_lines() {
  local word quote= typed=${cur//\\/}
  [[ $typed == [\'\"]* ]] && quote=${typed:0:1} typed=${typed:1}
  while IFS= read -r word; do
    [[ $word == "$typed"* ]] || continue
    [[ $quote ]] || printf -v word %q "$word"
    COMPREPLY+=("${word#"$colons"}")
  done < <("$program" complete "$@" 2>/dev/null)
}

# Offers what compgen prints, which may have spaces.
_arctrace_offer() {
  mapfile -t COMPREPLY < <(compgen "$@" -- "$cur")
  COMPREPLY=("${COMPREPLY[@]#"$colons"}")
}

# The trace that the command line names.
_arctrace_trace() {
  local i word
  for ((i = ${#COMP_WORDS[@]} - 1; i > 1; --i)); do
    word=${COMP_WORDS[i]//\\/}
    [[ $i -ne $COMP_CWORD && -f $word ]] && echo "$word" && return
  done
  echo arctrace.data
}

# Completes a value: KIND [WORD]...
_arctrace_value() {
  case $1 in
    words) _arctrace_offer -W "${*:2}" ;;
    file) compopt -o filenames 2>/dev/null; _arctrace_offer -f ;;
    directory) compopt -o filenames 2>/dev/null; _arctrace_offer -d ;;
    trace) compopt -o filenames 2>/dev/null; _arctrace_offer -f
      _arctrace_lines sessions ;;
    session) _arctrace_lines sessions ;;
    function) _arctrace_lines functions "$(_arctrace_trace)" ;;
    group) _arctrace_offer -g ;;
    subcommand) _arctrace_offer -W "$_arctrace_commands" ;;
    command) _arctrace_offer -c ;;
  esac
}

# Sets `at` to the first word from number `at` on that is no option of COMMAND, nor an
# option's value.
_arctrace_skip_options() {
  local kind
  for (( ; at < COMP_CWORD; ++at)); do
    [[ ${COMP_WORDS[at]} == -* && ${COMP_WORDS[at]} != -- ]] || return
    kind=$(_arctrace_kind "$1" "${COMP_WORDS[at]}")
    if [[ ${COMP_WORDS[at + 1]} == = ]]; then
      ((at += 2))
    elif [[ $kind != none && $kind != optional* ]]; then
      ((++at))
    fi
    while [[ ${COMP_WORDS[at + 1]} == :* ]]; do ((at += 2)); done
  done
}

_arctrace() {
  local program=${COMP_WORDS[0]} cur=${COMP_WORDS[COMP_CWORD]} first=$COMP_CWORD
  local command= option= colons= before at=1 kind
  COMPREPLY=()
  _arctrace_skip_options ''
  ((at < COMP_CWORD)) && command=${COMP_WORDS[at]}
  if [[ $command == record ]]; then
    # What comes after the options is the command that is recorded.
    ((++at))
    _arctrace_skip_options record
    [[ $at -lt $COMP_CWORD && ${COMP_WORDS[at]} == -- ]] && ((++at))
    if ((at <= COMP_CWORD)) && { [[ ${COMP_WORDS[at - 1]} == -- ]] || ((at < COMP_CWORD)); }; then
      if declare -F _command_offset >/dev/null; then
        _command_offset "$at"
      elif ((at == COMP_CWORD)); then
        _arctrace_offer -c
      else
        compopt -o filenames 2>/dev/null
        _arctrace_offer -f
      fi
      return
    fi
  fi
  # "std::sort" comes as three words, because ":" divides words.
  before=${COMP_LINE:0:COMP_POINT} before=${before%"$cur"}
  while [[ $before == *[![:space:]] ]] &&
    [[ ${COMP_WORDS[first]} == :* || ${COMP_WORDS[first - 1]} == :* ]]; do
    ((--first))
    cur=${COMP_WORDS[first]}$cur before=${before%"${COMP_WORDS[first]}"}
  done
  ((first < COMP_CWORD)) && colons=${cur%"${cur##*:}"}
  # "--mode=drop" comes as three words, because "=" divides words.
  if [[ $cur == = ]]; then
    option=${COMP_WORDS[first - 1]} cur=
  elif [[ ${COMP_WORDS[first - 1]} == = ]]; then
    option=${COMP_WORDS[first - 2]}
  elif [[ ${COMP_WORDS[first - 1]} == -?* ]]; then
    option=${COMP_WORDS[first - 1]}
    [[ $(_arctrace_kind "$command" "$option") == optional* ]] && option=
  fi
  kind=none
  [[ $option ]] && kind=$(_arctrace_kind "$command" "$option")
  kind=${kind#optional }
  if [[ $kind != none ]]; then
    _arctrace_value $kind
  elif [[ $cur == -* ]]; then
    _arctrace_offer -W "$(_arctrace_options "$command")"
    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
  elif [[ ! $command ]]; then
    _arctrace_offer -W "$_arctrace_commands"
  else
    _arctrace_value $(_arctrace_kind "$command" argument)
  fi
} && complete -F _arctrace arctrace
)sh";

std::string bash_case(const CommandRow& command, const OptionRow& option) {
  std::vector<std::string> patterns;
  for (const std::string& name : option.names) {
    patterns.push_back(absl::StrCat(command.name, ",", name));
  }
  return absl::StrCat("    ", absl::StrJoin(patterns, "|"), ") echo '",
                      option.is_optional && !option.value.empty() ? "optional " : "",
                      kind_text(option), "' ;;\n");
}

// An option or argument in the language of zsh's _arguments.
std::string zsh_action(const OptionRow& option) {
  switch (option.kind) {
    case ValueKind::kWord:
      return absl::StrCat("(", absl::StrJoin(option.words, " "), ")");
    case ValueKind::kFile:
      return "_files";
    case ValueKind::kTrace:
      return "_arctrace_traces";
    case ValueKind::kDirectory:
      return "_directories";
    case ValueKind::kSession:
      return "_arctrace_sessions";
    case ValueKind::kFunction:
      return "_arctrace_functions";
    case ValueKind::kGroup:
      return "_groups";
    case ValueKind::kSubcommand:
      return "_arctrace_commands";
    default:
      return " ";
  }
}

std::string zsh_escaped(const std::string& text) {
  return absl::StrReplaceAll(text,
                             {{"[", "\\["}, {"]", "\\]"}, {":", "\\:"}, {"'", "'\\''"}});
}

std::string zsh_specs(const CommandRow& command) {
  std::string out;
  for (const OptionRow& option : command.options) {
    const std::string action =
        option.value.empty()
            ? ""
            : absl::StrCat(option.is_optional ? "::" : ":", zsh_escaped(option.value),
                           ":", zsh_action(option));
    if (option.is_positional) {
      if (option.kind == ValueKind::kCommand) {
        absl::StrAppend(
            &out, "    '(-)1:command: _command_names -e' '*::arguments: _normal'\n");
      } else {
        absl::StrAppend(&out, "    '", option.is_repeated ? "*" : "",
                        option.is_required || option.is_repeated ? ":" : "::",
                        zsh_escaped(option.value), ":", zsh_action(option), "'\n");
      }
      continue;
    }
    for (const std::string& name : option.names) {
      const bool is_long = absl::StartsWith(name, "--");
      const char* mark = option.value.empty() ? "" : is_long ? "=" : "+";
      if (option.is_optional && is_long) mark = "=-";
      absl::StrAppend(&out, "    '", option.is_repeated ? "*" : "",
                      option.is_repeated
                          ? ""
                          : absl::StrCat("(", absl::StrJoin(option.names, " "), ")"),
                      name, mark, "[", zsh_escaped(short_text(option.description)), "]",
                      action, "'\n");
    }
  }
  return out;
}

constexpr const char* kZsh = R"sh(
_arctrace_lines() {
  local -a found
  found=("${(@f)$(${(Q)_arctrace_program} complete "$@" 2>/dev/null)}")
  found=(${found:#})
  compadd -a found
}
_arctrace_sessions() { _arctrace_lines sessions }
_arctrace_traces() { _files; _arctrace_lines sessions }
_arctrace_functions() {
  local word trace=arctrace.data
  for word in ${(Q)words[2,-1]}; do [[ -f $word ]] && trace=$word; done
  _arctrace_lines functions $trace
}
_arctrace() {
  local curcontext=$curcontext state line ret=1
  typeset -A opt_args
  local -a specs
  typeset -g _arctrace_program=$words[1]
  _arctrace_specs ''
  _arguments -C $specs '1: :_arctrace_commands' '*:: :->command' && ret=0
  if [[ $state == command ]]; then
    curcontext=${curcontext%:*}-$words[1]:
    _arctrace_specs $words[1]
    _arguments -S $specs && ret=0
  fi
  return ret
}
if [[ $funcstack[1] == _arctrace ]]; then _arctrace "$@"; else compdef _arctrace arctrace; fi
)sh";

}  // namespace

std::string short_text(const std::string& description) {
  std::string text = description.substr(0, description.find(". "));
  text = text.substr(0, text.find("; "));
  return text.ends_with('.') ? text.substr(0, text.size() - 1) : text;
}

std::string command_names(const std::vector<CommandRow>& commands) {
  std::vector<std::string> names;
  for (const CommandRow& command : commands) {
    if (!command.name.empty()) names.push_back(command.name);
  }
  return absl::StrJoin(names, " ");
}

std::string bash_completion(const std::vector<CommandRow>& commands) {
  std::string out = absl::StrCat(
      kCompletionHead, "_arctrace_commands='", command_names(commands), "'\n",
      "\n# The options of COMMAND.\n_arctrace_options() {\n  case $1 in\n");
  std::string kinds;
  for (const CommandRow& command : commands) {
    std::vector<std::string> names;
    for (const OptionRow& option : command.options) {
      if (option.is_positional) {
        OptionRow argument = option;
        argument.names = {"argument"};
        absl::StrAppend(&kinds, bash_case(command, argument));
        continue;
      }
      names.insert(names.end(), option.names.begin(), option.names.end());
      absl::StrAppend(&kinds, bash_case(command, option));
    }
    absl::StrAppend(&out, "    '", command.name, "') echo '", absl::StrJoin(names, " "),
                    "' ;;\n");
  }
  return absl::StrCat(out,
                      "  esac\n}\n\n# What the value of OPTION can be: COMMAND OPTION\n"
                      "_arctrace_kind() {\n  case $1,$2 in\n",
                      kinds, "    *) echo none ;;\n  esac\n}\n", kBash);
}

std::string zsh_completion(const std::vector<CommandRow>& commands) {
  std::string out = absl::StrCat("#compdef arctrace\n", kCompletionHead,
                                 "_arctrace_commands() {\n  local -a commands=(\n");
  for (const CommandRow& command : commands) {
    if (command.name.empty()) continue;
    absl::StrAppend(&out, "    '", command.name, ":", zsh_escaped(command.description),
                    "'\n");
  }
  absl::StrAppend(
      &out,
      "  )\n  _describe command commands\n}\n\n"
      "# Sets `specs` to those of COMMAND.\n_arctrace_specs() {\n  case $1 in\n");
  for (const CommandRow& command : commands) {
    absl::StrAppend(&out, "  '", command.name, "') specs=(\n", zsh_specs(command),
                    "  ) ;;\n");
  }
  return absl::StrCat(out, "  *) specs=() ;;\n  esac\n}\n", kZsh);
}

}  // namespace arctrace::cli
