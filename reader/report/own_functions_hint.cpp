#include "reader/report/own_functions_hint.hpp"

#include <absl/strings/str_cat.h>
#include <arctrace/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <string_view>
#include <vector>

#include "reader/render/session_text.hpp"
#include "reader/report/summary_lines.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

// The first program, whose module has the program's own functions; kNoIndex: none.
ProcessIndex first_program(const Definitions& definitions) {
  for (ProcessIndex i = 0; i < definitions.processes().size(); ++i) {
    if (definitions.processes()[i].origin == ARCTRACE_ORIGIN_EXEC) return i;
  }
  return kNoIndex;
}

// Whether a function of the program was recorded, also one whose calls a filter of the
// report hides.
bool has_function_of(const Functions& functions, const std::string& program) {
  for (FunctionId id = kUnknownFunction + 1; id < functions.size(); ++id) {
    const Function& function = functions[id];
    if (function.module == program ||
        (function.module.empty() && !function.name.starts_with('['))) {
      return true;
    }
  }
  return false;
}

// Whether the replay saw all that was recorded: what is missing may be anything.
bool is_whole(const Replay& replay, const Session* session, const Summary* summary) {
  if (!replay.has_all_threads()) return false;
  if (summary != nullptr && (summary->lost != 0 || summary->overwritten != 0)) {
    return false;
  }
  return session == nullptr || session->finished;
}

// What the recorder's command line says before the command that it ran.
std::span<const std::string> recorder_options(const Session* session,
                                              const std::vector<std::string>& command) {
  if (session == nullptr) return {};
  const std::span<const std::string> options = session->recorder_command;
  if (!command.empty() && command.size() < options.size() &&
      std::equal(command.begin() + 1, command.end(),
                 options.end() - static_cast<ptrdiff_t>(command.size()) + 1)) {
    return options.first(options.size() - command.size());
  }
  return options;
}

// Whether functions were to be patched.
bool has_patching(const Session* session, const std::vector<std::string>& command) {
  const std::span<const std::string> options = recorder_options(session, command);
  return std::any_of(options.begin(), options.end(), [](const std::string& option) {
    return option.starts_with("-P") || option.substr(0, option.find('=')) == "--patch";
  });
}

// Whether the recorder's command line has an option that leaves functions out. What it
// executes is not looked at, if the trace tells what that was: the last arguments.
bool has_functions_filter(const Session* session,
                          const std::vector<std::string>& command) {
  const std::span<const std::string> options = recorder_options(session, command);
  return std::any_of(options.begin(), options.end(), [](const std::string& option) {
    constexpr std::string_view kShort = "FNLDtZ";
    constexpr std::string_view kLong[] = {"--filter", "--notrace",     "--module",
                                          "--depth",  "--time-filter", "--size-filter"};
    if (option.size() > 1 && option[0] == '-' && option[1] != '-') {
      return kShort.find(option[1]) != std::string_view::npos;
    }
    return std::any_of(std::begin(kLong), std::end(kLong), [&](std::string_view name) {
      return option.substr(0, option.find('=')) == name;
    });
  });
}

}  // namespace

std::string own_functions_hint(const Replay& replay, const Session* session,
                               const Summary* summary, const EnabledList* enabled,
                               size_t width) {
  const Definitions& definitions = replay.definitions();
  const ProcessIndex program = first_program(definitions);
  if (program == kNoIndex || !is_whole(replay, session, summary) ||
      has_function_of(replay.functions(), definitions.processes()[program].executable)) {
    return {};
  }
  const std::vector<std::string> command = first_command(definitions);
  const std::string name = escaped(process_label(definitions, program));
  const std::string hint =
      absl::StrCat("functions of ", name, " itself are not recorded: ");
  if ((enabled != nullptr && enabled->excludes_functions()) ||
      has_functions_filter(session, command)) {
    return hint + "functions were switched off or filtered out meanwhile";
  }
  // Those that -P leaves are small, in most programs.
  const std::string record =
      absl::StrCat("record it with -P .", has_patching(session, command) ? " -Z 1" : "");
  const std::string advice = record + ", or compile it with -finstrument-functions";
  const bool fits = width == 0 || columns_of(hint) + advice.size() <= width;
  return hint + (fits ? advice : record);
}

}  // namespace arctrace::reader
