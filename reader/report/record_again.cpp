#include "reader/report/record_again.hpp"

#include <absl/container/flat_hash_map.h>
#include <absl/strings/str_cat.h>
#include <arctrace/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>

#include "reader/analysis/function_kinds.hpp"
#include "reader/analysis/tree_groups.hpp"
#include "reader/render/shell_text.hpp"
#include "reader/render/text_style.hpp"
#include "reader/report/report_summary.hpp"
#include "reader/report/summary_lines.hpp"
#include "reader/trace/format_names.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

// The time that a thread worked, as far as that is known.
uint64_t worked_ns(const Replay& replay, NodeIndex root) {
  const CallTree& tree = replay.tree();
  if (replay.has_dispatches()) {
    const CpuTime& cpu = tree.cpu_total(root);
    return cpu.cpu_ns + cpu.unknown_ns;
  }
  uint64_t sum_ns = 0;
  for (NodeIndex at = root; at != kNoNode; at = tree.next_in_preorder(at, root)) {
    const std::optional<FunctionKind> kind =
        function_kind(replay.functions()[tree[at].function]);
    if (!kind.has_value() || !may_wait(*kind)) sum_ns += tree[at].self_ns;
  }
  return sum_ns;
}

// Whether a function of the program was recorded. Functions count even if a filter of the
// report hides their calls.
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

// Whether the replay saw all that was recorded: missing records may be of anything.
bool is_whole(const Replay& replay, const Session* session, const Summary* summary) {
  if (!replay.has_all_threads()) return false;
  if (summary != nullptr && (summary->lost != 0 || summary->overwritten != 0)) {
    return false;
  }
  return session == nullptr || session->finished;
}

// Returns the part of the recorder's command line before the command that it ran.
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
bool has_patching(std::span<const std::string> options) {
  return std::any_of(options.begin(), options.end(), [](const std::string& option) {
    return option.starts_with("-P") || option.substr(0, option.find('=')) == "--patch";
  });
}

// Whether the option at `i` leaves no function out, but has -P take small ones: "-Z 1",
// "-Z1", "--size-filter=1".
bool is_any_size(std::span<const std::string> options, size_t i) {
  for (const std::string_view name : {"-Z", "--size-filter"}) {
    std::string_view option = options[i];
    if (option == name) return i + 1 < options.size() && options[i + 1] == "1";
    if (!option.starts_with(name)) continue;
    option.remove_prefix(name.size());
    return option == "1" || option == "=1";
  }
  return false;
}

bool has_any_size(std::span<const std::string> options) {
  for (size_t i = 0; i < options.size(); ++i) {
    if (is_any_size(options, i)) return true;
  }
  return false;
}

// Whether one of the recorder's options leaves functions out. The last arguments are the
// command that it ran if the trace does not tell that command.
bool has_functions_filter(std::span<const std::string> options) {
  constexpr std::string_view kShort = "FNLDtZ";
  constexpr std::string_view kLong[] = {"--filter", "--notrace",     "--module",
                                        "--depth",  "--time-filter", "--size-filter"};
  for (size_t i = 0; i < options.size(); ++i) {
    const std::string& option = options[i];
    if (is_any_size(options, i) || option.size() < 2 || option[0] != '-') continue;
    const bool leaves_out =
        option[1] != '-'
            ? kShort.find(option[1]) != std::string_view::npos
            : std::find(std::begin(kLong), std::end(kLong),
                        option.substr(0, option.find('='))) != std::end(kLong);
    if (leaves_out) return true;
  }
  return false;
}

// Why -P patched nothing of the program, and what may.
std::string refusal_text(uint32_t refusal) {
  return absl::StrCat(
      "nothing was patched for -P: ", patch_refusal_text(refusal),
      refusal == ARCTRACE_PATCH_THREADS ? "; record -p PID -P . patches it later" : "");
}

// kInText: the text says what to do, or why nothing helps.
enum class Advice : uint8_t { kNone, kInText, kPatch, kPatchSmall, kPatchEngine };

struct OwnFunctions {
  Advice advice = Advice::kNone;
  std::string text;    // all but the advice
  std::string engine;  // engine_of() the program
};

std::string_view file_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

// Returns the module of a process that engine_of() names, or nullptr.
const Module* engine_module(const Process& process) {
  std::vector<std::string_view> paths;
  for (const Module& module : process.modules) paths.emplace_back(module.path);
  const std::string engine = engine_of(process.executable, paths);
  for (const Module& module : process.modules) {
    if (!engine.empty() && file_name(module.path) == engine) return &module;
  }
  return nullptr;
}

OwnFunctions missing_functions(const Replay& replay, const Session* session,
                               const Summary* summary, const EnabledList* enabled) {
  const Definitions& definitions = replay.definitions();
  const ProcessIndex program = busiest_program(replay);
  if (program == kNoIndex || !is_whole(replay, session, summary) ||
      has_function_of(replay.functions(), definitions.processes()[program].executable)) {
    return {};
  }
  const std::string hint =
      absl::StrCat("functions of ", escaped(process_label(definitions, program)),
                   " itself are not recorded: ");
  const uint32_t refusal = definitions.processes()[program].patch_refusal;
  if (refusal != 0) return {Advice::kInText, hint + refusal_text(refusal), {}};
  const std::span<const std::string> options =
      recorder_options(session, first_command(definitions));
  if ((enabled != nullptr && enabled->excludes_functions()) ||
      has_functions_filter(options)) {
    return {Advice::kInText,
            hint + "functions were switched off or filtered out meanwhile",
            {}};
  }
  if (!has_patching(options) && is_python(definitions.processes()[program].executable)) {
    return {Advice::kInText,
            "a Python program's functions are not recorded: record python3 -m "
            "arctrace_python PROGRAM.py",
            {}};
  }
  const Module* const engine = engine_module(definitions.processes()[program]);
  if (engine != nullptr) {
    if (has_patching(options) && has_function_of(replay.functions(), engine->path)) {
      return {};
    }
    return {Advice::kPatchEngine, hint, std::string(file_name(engine->path))};
  }
  if (!has_patching(options)) return {Advice::kPatch, hint, {}};
  if (!has_any_size(options)) return {Advice::kPatchSmall, hint, {}};
  return {Advice::kInText,
          hint + "none could be patched for -P: arctrace functions --list says why",
          {}};
}

}  // namespace

std::vector<std::string> record_again(const Session* session,
                                      const std::vector<std::string>& option) {
  if (session == nullptr || !session->child_wait_status.has_value()) return {};
  const std::vector<std::string>& recorded = session->recorder_command;
  if (recorded.size() < 3 || recorded[1] != "record") return {};
  std::vector<std::string> words = {"arctrace", "record"};
  words.insert(words.end(), option.begin(), option.end());
  std::transform(recorded.begin() + 2, recorded.end(), std::back_inserter(words),
                 shell_word);
  return words;
}

std::string engine_of(std::string_view program,
                      std::span<const std::string_view> libraries) {
  constexpr size_t kStemMin = 3;  // "lib" and a letter or two begins too many names
  std::string_view stem = file_name(program);
  stem = stem.substr(0, stem.find_last_not_of("0123456789.-") + 1);
  if (stem.size() < kStemMin) return {};
  const std::string begin = "lib" + std::string(stem);
  for (const std::string_view path : libraries) {
    const std::string_view name = file_name(path);
    if (!name.starts_with(begin)) continue;
    const std::string_view rest = name.substr(begin.size());
    if (rest.find_first_of("0123456789.-") == 0 && rest.find(".so") != rest.npos) {
      return std::string(name);
    }
  }
  return {};
}

bool is_python(std::string_view program) {
  constexpr std::string_view kName = "python";
  std::string_view name = file_name(program);
  if (!name.starts_with(kName)) return false;
  name.remove_prefix(kName.size());
  return name.find_first_not_of("0123456789.") == name.npos;
}

std::string engine_pattern(std::string_view engine) {
  const size_t stem = engine.find_first_of("0123456789.-");
  return shell_word("lib:" + std::string(engine.substr(0, stem)) + "*:PATTERN");
}

ProcessIndex busiest_program(const Replay& replay) {
  const std::span<const Process> processes = replay.definitions().processes();
  absl::flat_hash_map<std::string_view, uint64_t> by_program;
  for (const ThreadTree& thread : replay.threads()) {
    const Thread& its = replay.definitions().threads()[thread.thread];
    if (its.process == kNoIndex || its.of_kernel()) continue;
    by_program[processes[its.process].executable] += worked_ns(replay, thread.root);
  }
  ProcessIndex busiest = kNoIndex;
  for (ProcessIndex i = 0; i < processes.size(); ++i) {
    if (processes[i].origin != ARCTRACE_ORIGIN_EXEC) continue;
    if (busiest == kNoIndex ||
        by_program[processes[i].executable] > by_program[processes[busiest].executable]) {
      busiest = i;
    }
  }
  return busiest;
}

std::string own_functions_hint(const Replay& replay, const Session* session,
                               const Summary* summary, const EnabledList* enabled,
                               size_t width) {
  const OwnFunctions missing = missing_functions(replay, session, summary, enabled);
  if (missing.advice == Advice::kNone || missing.advice == Advice::kInText) {
    return missing.text;
  }
  if (missing.advice == Advice::kPatchEngine) {
    const std::string engine_record =
        absl::StrCat("record it with -P ", engine_pattern(missing.engine));
    const std::string where = absl::StrCat("most are in ", escaped(missing.engine), ": ");
    const bool has_space =
        width == 0 ||
        columns_of(missing.text) + columns_of(where) + engine_record.size() <= width;
    return absl::StrCat(missing.text, has_space ? where : "", engine_record);
  }
  // In most programs, the functions that -P skips are small.
  const std::string record = absl::StrCat(
      "record it with -P .", missing.advice == Advice::kPatchSmall ? " -Z 1" : "");
  const std::string advice = record + ", or compile it with -finstrument-functions";
  const bool fits = width == 0 || columns_of(missing.text) + advice.size() <= width;
  return missing.text + (fits ? advice : record);
}

std::vector<std::string> own_functions_option(const Replay& replay,
                                              const Session* session,
                                              const Summary* summary,
                                              const EnabledList* enabled) {
  switch (missing_functions(replay, session, summary, enabled).advice) {
    case Advice::kPatch:
      return {"-P", "."};
    case Advice::kPatchSmall:
      return {"-Z", "1"};
    case Advice::kPatchEngine:  // nobody but the user knows the pattern
    case Advice::kNone:
    case Advice::kInText:
      break;
  }
  return {};
}

}  // namespace arctrace::reader
