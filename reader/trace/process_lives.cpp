#include "reader/trace/process_lives.hpp"

#include <algorithm>
#include <string>

namespace arctrace::reader {
namespace {

constexpr int64_t kAgeMaxNs = int64_t{1} << 60;

// A program that changes its title writes that over its arguments, and zeros up to their
// former end.
void drop_rest_of_title(std::vector<std::string>& arguments) {
  while (arguments.size() > 1 && arguments.back().empty()) arguments.pop_back();
}

// The recording went on in another file, which has what threads did after their last
// records here.
void end_at_last_records(Definitions& definitions) {
  for (ThreadIndex i = 0; i < definitions.threads().size(); ++i) {
    Thread& thread = *definitions.mutable_thread(i);
    if (thread.end_ns == INT64_MAX) thread.ended_unseen = true;
  }
}

}  // namespace

// The last of these up to `start_ns`, which is taken out with those before it;
// INT64_MIN: there is none.
ProcessLives::Exec ProcessLives::take_exec(std::vector<Exec>& execs, int64_t start_ns) {
  std::sort(execs.begin(), execs.end());
  const auto after =
      std::upper_bound(execs.begin(), execs.end(), Exec{start_ns, UINT64_MAX});
  if (after == execs.begin()) return {};
  Exec exec = *(after - 1);
  execs.erase(execs.begin(), after);
  exec.within_ns = std::min(exec.within_ns, static_cast<uint64_t>(start_ns) -
                                                static_cast<uint64_t>(exec.time_ns));
  return exec;
}

void ProcessLives::finish(const Session& session, Definitions& definitions) {
  if (session.finished && !has_session_totals_) end_at_last_records(definitions);
  const std::vector<ProcessIndex> programs = begin_programs(session, definitions);
  end_command(session, definitions);
  drop_short_calls(definitions);
  note_deaths(definitions);
  absl::flat_hash_map<uint32_t, int64_t> last_seen_ns;  // by pid
  for (const ProcessIndex index : programs) {
    Process& process = *definitions.mutable_process(index);
    set_execs(process);
    int64_t& seen = last_seen_ns.try_emplace(process.pid, 0).first->second;
    set_earliest(session, index, seen, process);
    seen = process.end_ns == INT64_MAX ? process.start_ns : process.end_ns;
  }
}

std::vector<ProcessIndex> ProcessLives::begin_programs(const Session& session,
                                                       Definitions& definitions) const {
  std::vector<ProcessIndex> order;
  for (ProcessIndex i = 0; i < definitions.processes().size(); ++i) {
    Process& process = *definitions.mutable_process(i);
    // A program that was seen to begin has the arguments that it was given.
    if (process.main_ns == INT64_MAX) drop_rest_of_title(process.arguments);
    if (process.origin != ARCTRACE_ORIGIN_FORK) order.push_back(i);
    // It has begun in an earlier file.
    if (session.resumed && process.forked_ns < started_ns_) process.forked_ns = INT64_MIN;
  }
  std::stable_sort(order.begin(), order.end(), [&](ProcessIndex a, ProcessIndex b) {
    return definitions.processes()[a].start_ns < definitions.processes()[b].start_ns;
  });
  return order;
}

void ProcessLives::set_execs(Process& process) {
  const Exec exec = take_exec(execs_[process.pid], process.start_ns);
  process.exec_ns = exec.time_ns;
  process.exec_within_ns = exec.within_ns;
  // The kernel says it to the moment, which was later than a program that was spawned
  // was about to be executed. Its numbers are those of the first PID namespace.
  if (process.pid_namespace != 0) return;
  const int64_t kernel_ns =
      take_exec(kernel_execs_[process.pid], process.start_ns).time_ns;
  if (kernel_ns != INT64_MIN && kernel_ns >= process.exec_ns) {
    process.exec_ns = kernel_ns;
    process.exec_within_ns = 0;
  }
}

// `seen_ns`: when an earlier process of its pid was there last.
void ProcessLives::set_earliest(const Session& session, ProcessIndex index,
                                int64_t seen_ns, Process& process) const {
  // It has begun in an earlier file, which has its first time.
  const bool is_older =
      session.resumed && process.exec_ns == INT64_MIN && process.start_ns < started_ns_;
  if (is_older) process.main_ns = INT64_MAX;
  const auto age = ages_ns_.find(index);
  if (age == ages_ns_.end() || is_older) return;
  const int64_t age_ns = std::min(age->second, kAgeMaxNs);
  const int64_t born_ns =
      process.start_ns < INT64_MIN + age_ns ? INT64_MIN : process.start_ns - age_ns;
  // One that may be older than the session and was not seen to call main has joined as it
  // ran.
  process.ran_before =
      born_ns < 0 && process.main_ns == INT64_MAX && process.exec_ns == INT64_MIN;
  if (born_ns >= 0 || process.main_ns != INT64_MAX) {
    process.earliest_ns = std::min(std::max(born_ns, seen_ns), process.start_ns);
  }
}

// What the recorder learned of the end of its command, whose last program that is. None
// of its threads outlived that, though the collector may have seen their ends much later.
void ProcessLives::end_command(const Session& session, Definitions& definitions) const {
  if (!session.child_wait_status.has_value()) return;
  ProcessIndex command = kNoIndex;
  for (ProcessIndex i = 0; i < definitions.processes().size(); ++i) {
    const Process& process = definitions.processes()[i];
    if (process.pid != ended_child_.pid || process.start_ns > ended_child_.time_ns)
      continue;
    if (command == kNoIndex ||
        definitions.processes()[command].start_ns <= process.start_ns) {
      command = i;
    }
  }
  if (command == kNoIndex) return;
  definitions.mutable_process(command)->wait_status = session.child_wait_status;
  for (ThreadIndex i = 0; i < definitions.threads().size(); ++i) {
    Thread& thread = *definitions.mutable_thread(i);
    if (thread.process == command)
      thread.end_ns = std::min(thread.end_ns, ended_child_.time_ns);
  }
}

// Ends that processes did not record themselves: those of all their threads.
void ProcessLives::note_deaths(Definitions& definitions) {
  std::vector<int64_t> last_ns(definitions.processes().size(), INT64_MIN);
  for (const Thread& thread : definitions.threads()) {
    if (thread.process >= last_ns.size()) continue;
    last_ns[thread.process] = std::max(last_ns[thread.process], thread.end_ns);
  }
  for (ProcessIndex i = 0; i < last_ns.size(); ++i) {
    if (last_ns[i] != INT64_MIN) definitions.mutable_process(i)->died_ns = last_ns[i];
  }
}

// A call that still waited at the end counts only if it had lasted long enough then.
void ProcessLives::drop_short_calls(Definitions& definitions) const {
  for (ThreadIndex i = 0; i < definitions.threads().size(); ++i) {
    Thread& thread = *definitions.mutable_thread(i);
    if (thread.waiting.empty()) continue;
    const int64_t end_ns = std::min(definitions.life_end_ns(i), finished_ns_);
    std::erase_if(thread.waiting, [&](const WaitingCall& call) {
      return end_ns < INT64_MIN + thread.waiting_min_ns ||
             call.time_ns > end_ns - thread.waiting_min_ns;
    });
  }
}

}  // namespace arctrace::reader
