// The section of the summary about what to do next, and what the recording lacks.
#include <absl/container/btree_map.h>
#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reader/analysis/function_kinds.hpp"
#include "reader/render/labels.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/render/session_text.hpp"
#include "reader/render/shell_text.hpp"
#include "reader/report/record_again.hpp"
#include "reader/report/report_summary.hpp"
#include "reader/report/summary_lines.hpp"
#include "reader/symbols/debug_package.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {

bool is_nameless(const Function& function) {
  const std::string_view module = function.module;
  return function.name.starts_with(std::string(module.substr(module.rfind('/') + 1)) +
                                   "+0x");
}

std::string joined_text(const Definitions& definitions) {
  const size_t joined = definitions.programs_joined_running();
  if (joined == 0) return {};
  const std::string what =
      joined == 1 ? "the program did before it was joined"
                  : absl::StrCat(joined, " programs did before each was joined");
  return absl::StrCat("  what ", what, " is not in the trace");
}

namespace {

// A twentieth of the time is worth a hint.
constexpr uint64_t kNoticeable = 20;

bool is_noticeable(uint64_t part_ns, uint64_t all_ns) {
  return part_ns != 0 && part_ns >= all_ns / kNoticeable;
}

std::vector<std::string> with_files(std::vector<std::string> words,
                                    const SummaryFacts& facts) {
  if (facts.files != nullptr) {
    words.insert(words.end(), facts.files->begin(), facts.files->end());
  }
  return words;
}

// Appends a row with a command that can be pasted into a shell.
void add_command(SummarySection& section, const std::string& before,
                 const std::vector<std::string>& words, const TextStyle& style) {
  if (words.empty()) return;
  section.rows.push_back(
      absl::StrCat(before, shell_command(words, before.size(), style.width)));
}

constexpr const char* kIndent = "       ";

// The module whose functions without a name took the most time.
struct NamelessModule {
  std::string path;
  uint64_t self_ns = 0;
};

NamelessModule nameless_module(const std::vector<FunctionTotal>& totals,
                               const Functions& functions) {
  absl::btree_map<std::string, uint64_t> times;
  for (const FunctionTotal& total : totals) {
    const Function& function = functions[total.function];
    if (is_nameless(function)) times[std::string(function.module)] += total.self_ns;
  }
  const auto most =
      std::max_element(times.begin(), times.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == times.end()) return {};
  return {most->first, most->second};
}

// Adds what to do about functions without names, if much of the time was in them.
void add_names_hint(SummarySection& section, const SummaryFacts& facts,
                    const std::vector<FunctionTotal>& totals, const TextStyle& style) {
  const NamelessModule module = nameless_module(totals, facts.replay.functions());
  if (!is_noticeable(module.self_ns, facts.all_ns())) return;
  const std::string package = debug_package_of(module.path);
  if (package.empty() && facts.has_debuginfod) return;
  std::string row = absl::StrCat(
      "functions of ", escaped(module.path.substr(module.path.rfind('/') + 1)),
      " without a name took ", share_text(module.self_ns, facts.all_ns()), " of the time",
      package.empty() ? "" : absl::StrCat(": install ", escaped(package)));
  if (facts.has_debuginfod) {
    section.rows.push_back(std::move(row));
    return;
  }
  section.rows.push_back(absl::StrCat(
      row, package.empty() ? ": its symbols may be" : ", or their names may be",
      " on a server"));
  std::vector<std::string> words = {"arctrace", "report", "--debuginfod"};
  if (std::getenv("DEBUGINFOD_URLS") == nullptr) {
    words.insert(words.begin(), "DEBUGINFOD_URLS=https://debuginfod.elfutils.org");
  }
  add_command(section, kIndent, with_files(std::move(words), facts), style);
}

// The time in calls of library functions that may wait, and those of them about locks.
// Waits for conditions and semaphores are none for a lock.
struct WaitTimes {
  uint64_t all_ns = 0, lock_ns = 0;
};

WaitTimes wait_times(const std::vector<FunctionTotal>& totals,
                     const Functions& functions) {
  WaitTimes times;
  for (const FunctionTotal& total : totals) {
    const std::optional<FunctionKind> kind = function_kind(functions[total.function]);
    if (!kind.has_value() || !may_wait(*kind)) continue;
    times.all_ns += total.self_ns;
    if (*kind == FunctionKind::kLock || *kind == FunctionKind::kFutex) {
      times.lock_ns += total.self_ns;
    }
  }
  return times;
}

// Says that the kernel was not recorded. If waits dominate, or a signal ended the
// program, root, who may record it, gets the command, too.
void add_kernel_hint(SummarySection& section, const SummaryFacts& facts,
                     const WaitTimes& waits, const TextStyle& style) {
  section.rows.emplace_back(
      "time on the CPU and waiting are not told apart: record with --kernel");
  const bool has_crashed = fatal_signal(facts.session) != 0;
  if ((waits.all_ns < facts.all_ns() / 4 && !has_crashed) || geteuid() != 0) return;
  std::vector<std::string> options = {"--kernel"};
  if (has_crashed) options.emplace_back("--signals");
  add_command(section, kIndent, record_again(facts.session, options), style);
}

void add_locks_hint(SummarySection& section, const SummaryFacts& facts,
                    const WaitTimes& waits, const TextStyle& style) {
  if (!is_noticeable(waits.lock_ns, facts.all_ns())) return;
  section.rows.push_back(absl::StrCat(
      share_text(waits.lock_ns, facts.all_ns()),
      " of the time was in calls that take locks; which, and who had them:"));
  add_command(section, kIndent, with_files({"arctrace", "report", "--view=locks"}, facts),
              style);
}

// Returns a pattern that matches the function and can stand in quotes, on a terminal and
// in any shell.
std::string pattern_of(std::string_view name) {
  constexpr std::string_view kSpecial = "'\\*?[]";
  const bool is_harmless = printable(name) == name;
  std::string pattern;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_kept = byte < 0x80 ? absl::ascii_isprint(byte) &&
                                           kSpecial.find(c) == std::string_view::npos
                                     : is_harmless;
    pattern += is_kept && !(pattern.empty() && c == '-') ? c : '?';
  }
  return absl::StrCat("'", pattern, "'");
}

// Whether a thread in this call only waits for others, or for time to pass.
bool only_waits(const Function& function) {
  const std::optional<FunctionKind> kind = function_kind(function);
  return kind.has_value() && may_wait(*kind) && *kind != FunctionKind::kIo &&
         *kind != FunctionKind::kLock && *kind != FunctionKind::kFutex;
}

// Returns the function of which calls and callers are worth a look: the one with the most
// time on a CPU if that is known, else with the most time, but waits only if nothing else
// took noticeably long. Frames that are no functions have no useful graph. Null: there is
// no function.
const FunctionTotal* worth_a_look(const std::vector<FunctionTotal>& totals,
                                  const SummaryFacts& facts) {
  const Functions& functions = facts.replay.functions();
  const bool has_cpu = facts.replay.has_dispatches();
  const FunctionTotal* most = nullptr;
  const FunctionTotal* first = nullptr;
  for (const FunctionTotal& total : totals) {
    if (facts.times.find(facts.all, total.function) == nullptr ||
        functions[total.function].name.starts_with('[')) {
      continue;
    }
    if (first == nullptr) first = &total;
    if (has_cpu) {
      if (most == nullptr || total.self_cpu_ns > most->self_cpu_ns) most = &total;
    } else if (most == nullptr && !only_waits(functions[total.function]) &&
               is_noticeable(total.self_ns, facts.all_ns())) {
      most = &total;
    }
  }
  return most == nullptr ? first : most;
}

}  // namespace

SummarySection hints_section(const SummaryFacts& facts, const TextStyle& style) {
  SummarySection section;
  const Functions& functions = facts.replay.functions();
  const std::vector<FunctionTotal> totals = hottest_functions(facts);
  if (std::string hint = own_functions_hint(facts.replay, facts.session, facts.summary,
                                            facts.enabled, style.width);
      !hint.empty()) {
    section.rows.push_back(std::move(hint));
    const std::vector<std::string> option =
        own_functions_option(facts.replay, facts.session, facts.summary, facts.enabled);
    if (!option.empty()) {
      add_command(section, kIndent, record_again(facts.session, option), style);
    }
  }
  const WaitTimes waits = wait_times(totals, functions);
  if (!facts.replay.has_dispatches()) add_kernel_hint(section, facts, waits, style);
  add_locks_hint(section, facts, waits, style);
  if (facts.symbol_findings != nullptr) {
    std::string missing = missing_lines_text(*facts.symbol_findings);
    if (!missing.empty()) section.rows.push_back(std::move(missing));
  }
  add_names_hint(section, facts, totals, style);
  add_command(section,
              "more:  ", with_files({"arctrace", "report", "--view=tree"}, facts), style);
  const FunctionTotal* hottest = worth_a_look(totals, facts);
  if (hottest != nullptr) {
    const std::string pattern = pattern_of(facts.replay.shown_names()[hottest->function]);
    add_command(section, kIndent, with_files({"arctrace", "graph", pattern}, facts),
                style);
    add_command(
        section, kIndent,
        with_files({"arctrace", "report", "--view=slowest", "-F", pattern}, facts),
        style);
  }
  return section;
}

}  // namespace arctrace::reader
