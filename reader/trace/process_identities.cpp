#include "reader/trace/process_identities.hpp"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <arctrace/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace arctrace::reader {
namespace {

// Whether a process may have begun to execute a program at that time, by what it told of
// its end until then.
bool may_go_on(const Process& process, int64_t time_ns) {
  return process.end_how == ARCTRACE_END_EXEC || process.end_how == ARCTRACE_END_NONE ||
         process.end_ns >= time_ns;
}

}  // namespace

std::vector<std::vector<ProcessIndex>> join_identities(const Definitions& definitions) {
  const auto& processes = definitions.processes();
  std::vector<ProcessIndex> order(processes.size());
  std::iota(order.begin(), order.end(), ProcessIndex{0});
  std::stable_sort(order.begin(), order.end(), [&](ProcessIndex a, ProcessIndex b) {
    return processes[a].start_ns < processes[b].start_ns;
  });
  std::vector<std::vector<ProcessIndex>> joined;
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, size_t> last;  // by number
  for (const ProcessIndex i : order) {
    const Process& process = processes[i];
    const auto [before, is_first] =
        last.try_emplace({process.pid_namespace, process.pid}, joined.size());
    const bool goes_on =
        !is_first && process.origin == ARCTRACE_ORIGIN_EXEC &&
        may_go_on(processes[joined[before->second].back()], process.start_ns);
    if (!goes_on) {
      before->second = joined.size();
      joined.emplace_back();
    }
    joined[before->second].push_back(i);
  }
  return joined;
}

ProcessesAndThreads count_joined(const Definitions& definitions,
                                 std::span<const ThreadIndex> threads) {
  const auto& processes = definitions.processes();
  // Of each identity, the first one of its process; that of none is kNoIndex.
  std::vector<ProcessIndex> begin_of(processes.size());
  for (const std::vector<ProcessIndex>& identities : join_identities(definitions)) {
    for (const ProcessIndex i : identities) begin_of[i] = identities.front();
  }
  absl::flat_hash_set<ProcessIndex> seen, has_first_thread;
  ProcessesAndThreads count;
  for (const ThreadIndex i : threads) {
    const Thread& thread = definitions.threads()[i];
    const bool is_known = thread.process < processes.size();
    const ProcessIndex process = is_known ? begin_of[thread.process] : kNoIndex;
    if (seen.insert(process).second) ++count.processes;
    const bool is_first = is_known && thread.tid == processes[thread.process].pid;
    if (!is_first || has_first_thread.insert(process).second) ++count.threads;
  }
  return count;
}

}  // namespace arctrace::reader
