#include "reader/cli/options/dump_filter.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "reader/replay/functions.hpp"
#include "src/base/untrusted_bytes.hpp"

namespace arctrace::cli {

bool DumpFilter::wants_thread(const reader::Definitions& definitions,
                              reader::ThreadIndex thread) const {
  if (pids.empty() && tids.empty()) return true;
  const reader::Thread* found = definitions.thread(thread);
  if (found == nullptr) return false;
  return (pids.empty() || pids.contains(definitions.pid_of(thread))) &&
         (tids.empty() || tids.contains(found->tid));
}

bool DumpFilter::wants_function(const reader::Record& record,
                                const reader::StackEffect& effect,
                                reader::ProcessIndex process,
                                reader::FunctionResolver& resolver,
                                reader::FunctionPatterns& patterns) const {
  if (functions.empty()) return true;
  const auto matches = [&](reader::FunctionId id) {
    return patterns.match(id, resolver.functions());
  };
  if (record.type == ARCTRACE_TYPE_ENTER || record.type == ARCTRACE_TYPE_EXIT_NAMED) {
    const auto frame = load_part_untrusted<arctrace_frame_body>(record.body);
    if (matches(resolver.resolve(process, frame.key, record.time_ns))) return true;
  }
  return std::any_of(effect.left.begin(), effect.left.end(), matches);
}

void add_thread_options(CLI::App& app, std::vector<uint32_t>& pids,
                        std::vector<uint32_t>& tids, const char* pid_name,
                        const char* pid_help) {
  const auto add = [&app](const char* name, std::vector<uint32_t>& numbers,
                          const char* help, const char* type) {
    app.add_option(name, numbers, help)
        ->delimiter(',')
        ->check(not_empty())
        ->allow_extra_args(false)
        ->type_name(type);
  };
  add(pid_name, pids, pid_help, "PID");
  add("--tid", tids,
      "print only records of these threads; several are separated by commas", "TID");
}

}  // namespace arctrace::cli
