#include "reader/cli/options/replay_filter_options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "reader/analysis/tree_groups.hpp"
#include "reader/cli/options/glob_option.hpp"
#include "src/base/glob.hpp"

namespace arctrace::cli {
namespace {

void add_min_duration(CLI::App& app, uint64_t& min_duration_ns) {
  app.add_option_function<std::string>(
         "-t,--min-duration",
         [&min_duration_ns](const std::string& text) {
           const absl::StatusOr<int64_t> parsed = recording::parse_time_ns(text);
           if (!parsed.ok() || *parsed < 0) {
             throw CLI::ValidationError(
                 "--min-duration", parsed.ok() ? "\"" + text + "\" is negative"
                                               : std::string(parsed.status().message()));
           }
           min_duration_ns = static_cast<uint64_t>(*parsed);
         },
         "hide calls that took less time, such as 10us; calls that are open at the "
         "end stay")
      ->type_name("TIME");
}

}  // namespace

bool ReplayFilterOptions::wants_thread(const reader::Definitions& definitions,
                                       reader::ThreadIndex thread) const {
  const reader::Thread* facts = definitions.thread(thread);
  const reader::Process* process = definitions.process_of(thread);
  const auto has = [](const std::vector<uint32_t>& list, uint32_t value) {
    return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
  };
  if (facts == nullptr || !has(tids, facts->tid)) return false;
  if (!has(pids, definitions.pid_of(thread))) return false;
  if (processes.empty()) return true;
  const std::string program = process == nullptr ? "" : process->executable;
  const std::string name = program.substr(program.rfind('/') + 1);
  const std::string called = reader::process_label(definitions, facts->process);
  return std::any_of(processes.begin(), processes.end(), [&](const std::string& glob) {
    if (glob.find('/') != std::string::npos) return glob_matches(glob, program);
    return glob_matches(glob, called) || glob_matches(glob, name);
  });
}

bool ReplayFilterOptions::wants_gap(const reader::Definitions& definitions,
                                    const reader::Gap& gap) const {
  if (gap.to_ns < filter.from_ns || gap.from_ns >= filter.until_ns) return false;
  return gap.thread == reader::kNoIndex || !has_thread_filter() ||
         wants_thread(definitions, gap.thread);
}

void add_replay_filter_options(CLI::App& app, ReplayFilterOptions& options,
                               const std::string& functions_help) {
  const std::string group = "Filters";
  const auto add_list = [&](const char* name, auto& list, const char* type,
                            const char* help) {
    app.add_option(name, list, help)
        ->delimiter(',')
        ->check(not_empty())
        ->allow_extra_args(false)
        ->type_name(type)
        ->group(group);
  };
  add_list("--pid", options.pids, "PID,...", "show only these processes");
  add_list("--tid", options.tids, "TID,...", "show only these threads");
  app.add_flag("--all-threads", options.all_threads,
               "show also threads of other processes that appear in the kernel's records")
      ->group(group);
  const auto add_globs = [&](const char* name, std::vector<std::string>& globs,
                             const std::string& help) {
    add_glob_option(app, name, globs, help)->group(group);
  };
  add_globs("--process", options.processes,
            "show only processes whose program matches GLOB: the name by which it was "
            "called or that of its file, or its path if GLOB contains a /; may be "
            "repeated");
  if (!functions_help.empty()) {
    add_globs("-F,--function", options.filter.only, functions_help);
  }
  add_globs("-N,--exclude", options.filter.except,
            "hide functions that match GLOB, and what they call; may be repeated");
  app.add_option("-D,--depth", options.filter.max_depth,
                 "show at most N frames within one another")
      ->type_name("N")
      ->group(group);
  add_time_range_option(app, options.range)->group(group);
  add_min_duration(app, options.filter.min_duration_ns);
  app.get_option("--min-duration")->group(group);
}

}  // namespace arctrace::cli
