// Takes the records of definitions and of the collector and builds all facts from them:
// what the collector's records tell of threads and the session, and when processes began
// and ended.
#include "reader/trace/definitions_loader.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <string>
#include <tuple>

#include "reader/trace/record.hpp"
#include "reader/trace/record_types.hpp"

namespace arctrace::reader {

void DefinitionsLoader::add_untrusted(const RawRecord& record, uint64_t chunk) {
  deferred_.push_back({record.ticks,
                       chunk,
                       record.offset,
                       record.type,
                       record.writer,
                       {record.body.begin(), record.body.end()}});
}

void DefinitionsLoader::add_kernel_exec(uint32_t pid, uint64_t monotonic_ns) {
  kernel_execs_.emplace_back(pid, monotonic_ns);
}

void DefinitionsLoader::build_clock(ClockMap& clock, FindingLog& findings) const {
  std::vector<ClockSync> syncs;
  for (const DeferredRecord& deferred : deferred_) {
    if (deferred.type != ARCTRACE_TYPE_CLOCK_SYNC) continue;
    const auto body = load_part_untrusted<arctrace_clock_sync_body>(deferred.body);
    syncs.push_back({body.ticks, body.monotonic_ns, body.realtime_ns});
  }
  std::sort(syncs.begin(), syncs.end(), [](const ClockSync& a, const ClockSync& b) {
    return std::tie(a.ticks, a.monotonic_ns) < std::tie(b.ticks, b.monotonic_ns);
  });
  const uint64_t rejected = clock.set_syncs(syncs);
  if (rejected != 0) {
    findings.add(Rule::kClockSync, absl::StrCat(rejected, " of ", syncs.size(),
                                                " clock syncs do not rise"));
  }
}

void DefinitionsLoader::build(Session& session, ClockMap& clock, Definitions& definitions,
                              WriterOutcomes& fates, FindingLog& findings) {
  build_clock(clock, findings);
  std::sort(deferred_.begin(), deferred_.end(),
            [](const DeferredRecord& a, const DeferredRecord& b) {
              return std::tuple(build_order(a.type), a.ticks, a.chunk, a.offset) <
                     std::tuple(build_order(b.type), b.ticks, b.chunk, b.offset);
            });
  // These facts must be known before all definitions, also before those that are older
  // than the file.
  for (const DeferredRecord& deferred : deferred_) {
    if (deferred.type == ARCTRACE_TYPE_TOTALS) {
      const auto body = load_part_untrusted<arctrace_totals_body>(deferred.body);
      session.may_lack_definitions |= body.lost[ARCTRACE_LOST_DEFINITIONS] != 0;
    }
    if (deferred.type != ARCTRACE_TYPE_SESSION) continue;
    const auto body = load_part_untrusted<arctrace_session_body>(deferred.body);
    session.may_lack_definitions |= body.what == ARCTRACE_SESSION_STARTED &&
                                    (body.detail & ARCTRACE_SESSION_ELSEWHERE) != 0;
  }
  DefinitionsBuilder builder(session, clock, definitions, fates, findings);
  for (const DeferredRecord& deferred : deferred_) {
    builder.apply(deferred.type, deferred.writer, deferred.ticks,
                  BodyReader(deferred.body), deferred.chunk, deferred.offset);
  }
  for (const auto& [pid, monotonic_ns] : kernel_execs_) {
    builder.add_kernel_exec(pid, monotonic_ns);
  }
  builder.finish();
  deferred_.clear();
  deferred_.shrink_to_fit();
}

// ---- Records of the collector -----------------------------------------------------

void DefinitionsBuilder::writer_end(BodyReader reader) {
  const auto body = reader.read<arctrace_writer_end_body>();
  outcomes_[body.writer] = WriterOutcome::kDead;
  Thread* thread = definitions_.mutable_thread(definitions_.find_thread(body.writer));
  // If several collectors saw the end, the first one saw it best.
  if (thread != nullptr) thread->end_ns = std::min(thread->end_ns, time_ns_);
}

// A writer whose definitions did not fit the buffer still has a slot, and losses.
void DefinitionsBuilder::totals(BodyReader reader) {
  if (writer_ == ARCTRACE_WRITER_COLLECTOR) lives_.note_totals();
  const bool is_thread =
      writer_ != ARCTRACE_WRITER_COLLECTOR && (writer_ & ARCTRACE_WRITER_KERNEL) == 0;
  const arctrace_totals_owner owner = read_totals_owner(reader);
  if (!is_thread || owner.process == 0 || definitions_.find_thread(writer_) != kNoIndex) {
    return;
  }
  const int64_t start_ns = clock_.to_ns(owner.start_ticks);
  ProcessIndex index = definitions_.find_process(owner.process);
  if (index == kNoIndex) {
    Process process;
    process.id = owner.process;
    process.pid = owner.pid;
    process.start_ns = start_ns;
    index = definitions_.add_process(std::move(process));
  }
  Process& process = *definitions_.mutable_process(index);
  if (process.origin == 0) process.start_ns = std::min(process.start_ns, start_ns);
  Thread thread;
  thread.writer = writer_;
  thread.process = index;
  thread.tid = owner.tid;
  thread.start_ns = start_ns;
  // Without a collector that reaps slots during the recording, the thread may have ended
  // long before that was seen: its time is not known.
  thread.ended_unseen = true;
  definitions_.add_thread(std::move(thread));
}

void DefinitionsBuilder::alive(BodyReader reader) {
  Thread* thread = definitions_.mutable_thread(
      definitions_.find_thread(reader.read<arctrace_alive_body>().writer));
  if (thread != nullptr) thread->alive_ns = std::max(thread->alive_ns, time_ns_);
}

// The first entry of each kind counts: all are of one machine.
void DefinitionsBuilder::hook_costs(BodyReader reader) {
  uint32_t count = reader.read<arctrace_hook_costs_body>().count;
  for (; count > 0; --count) {
    const auto cost = reader.read<arctrace_hook_cost>();
    if (!reader.ok()) return;
    std::vector<arctrace_hook_cost>& known = session_.hook_costs;
    if (cost.kind >= ARCTRACE_HOOK_KINDS ||
        std::any_of(known.begin(), known.end(), [&](const arctrace_hook_cost& other) {
          return other.kind == cost.kind;
        })) {
      continue;
    }
    known.push_back(cost);
  }
}

void DefinitionsBuilder::clock_word(BodyReader reader) {
  const auto body = reader.read<arctrace_clock_word_body>();
  session_.clock_word = ClockWord{body.mean_age_ns, body.longest_ns};
}

void DefinitionsBuilder::session_event(BodyReader reader) {
  const auto body = reader.read<arctrace_session_body>();
  if (body.what == ARCTRACE_SESSION_FINISHED) {
    session_.finished = true;
    lives_.note_finished(time_ns_);
  }
  if (body.what == ARCTRACE_SESSION_STARTED) {
    session_.resumed = (body.detail & ARCTRACE_SESSION_RESUMED) != 0;
    if (session_.started_ns == INT64_MIN) {
      session_.started_ns = time_ns_;
      session_.begins_elsewhere = session_.resumed;
    }
    session_.finished = false;  // an earlier file of the recording was
    lives_.note_started(time_ns_);
  }
  if (body.what == ARCTRACE_SESSION_DUMP_BEGIN) {
    session_.copied_ns = time_ns_;
    definitions_.set_known_until(time_ns_);
  }
  if (body.what == ARCTRACE_SESSION_DISK_FULL) {
    session_.disk_full_errno = static_cast<int32_t>(body.detail);
  }
}

void DefinitionsBuilder::counts(BodyReader reader) {
  const auto counts = reader.read<arctrace_counts_body>();
  session_.processes = std::max(session_.processes, counts.processes);
  session_.threads = std::max(session_.threads, counts.threads);
}

void DefinitionsBuilder::child_status(BodyReader reader) {
  const auto child = reader.read<arctrace_child_status_body>();
  session_.child_wait_status = child.status;
  lives_.note_child_end(child.child_pid, time_ns_);
}

void DefinitionsBuilder::enabled(BodyReader reader) {
  const auto body = reader.read<arctrace_enabled_body>();
  definitions_.mutable_live_filters().add(time_ns_, reader.text(body.filter_size));
  definitions_.mutable_kernel_events().add(time_ns_, body.gate);
  const bool is_on = (body.gate & ARCTRACE_GATE_KERNEL) != 0;
  if (is_on && kernel_off_ns_.has_value()) {
    definitions_.mutable_kernel_gaps().add(*kernel_off_ns_, time_ns_, kCpuNotKnown);
    kernel_off_ns_.reset();
  } else if (!is_on && !kernel_off_ns_.has_value()) {
    kernel_off_ns_ = time_ns_;
  }
}

// If a full disk kept records from the file, which then ends there, the record does not
// tell when the loss began.
void DefinitionsBuilder::lost(BodyReader reader) {
  const auto body = reader.read<arctrace_lost_body>();
  if ((body.flags & ARCTRACE_LOST_CPU) == 0 || body.since_ticks == 0) return;
  definitions_.mutable_kernel_gaps().add(clock_.to_ns(body.since_ticks), time_ns_,
                                         body.flags >> ARCTRACE_LOST_CPU_SHIFT);
}

void DefinitionsBuilder::finish() {
  if (kernel_off_ns_.has_value()) {
    definitions_.mutable_kernel_gaps().add(*kernel_off_ns_, INT64_MAX, kCpuNotKnown);
  }
  for (ThreadIndex i = 0; i < definitions_.threads().size(); ++i) {
    Thread& thread = *definitions_.mutable_thread(i);
    if (thread.announced_ns == INT64_MIN) continue;
    thread.end_ns = std::min(thread.end_ns, thread.announced_ns);
    thread.alive_ns = std::max(thread.alive_ns, thread.end_ns);
  }
  lives_.finish(session_, definitions_);
}

namespace {

constexpr int64_t kAgeMaxNs = int64_t{1} << 60;

// A program that changes its title overwrites its arguments, with zeros up to their
// former end.
void drop_rest_of_title(std::vector<std::string>& arguments) {
  while (arguments.size() > 1 && arguments.back().empty()) arguments.pop_back();
}

// Marks ends as not seen: the recording went on in another file, which has what threads
// did after their last records here.
void end_at_last_records(Definitions& definitions) {
  for (ThreadIndex i = 0; i < definitions.threads().size(); ++i) {
    Thread& thread = *definitions.mutable_thread(i);
    if (thread.end_ns == INT64_MAX) thread.ended_unseen = true;
  }
}

// Marks ends as not seen that only the one who copied the buffer found: nobody looked
// before.
void forget_late_ends(int64_t copied_ns, Definitions& definitions) {
  for (ThreadIndex i = 0; i < definitions.threads().size(); ++i) {
    Thread& thread = *definitions.mutable_thread(i);
    if (thread.end_ns == INT64_MAX || definitions.life_end_ns(i) < copied_ns) continue;
    thread.end_ns = INT64_MAX;
    thread.ended_unseen = true;
    Process* process = definitions.mutable_process(thread.process);
    if (process != nullptr) process->died_unseen = true;
  }
}

}  // namespace

// Returns the last of these up to `start_ns`, and removes it with those before it;
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
  if (session.copied_ns != INT64_MIN) forget_late_ends(session.copied_ns, definitions);
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
    // A program that was seen to begin still has the arguments that it was given.
    if (process.main_ns == INT64_MAX) drop_rest_of_title(process.arguments);
    if (process.origin != ARCTRACE_ORIGIN_FORK) order.push_back(i);
    // A process that was forked before has begun in an earlier file.
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
  // The kernel records the exact time of an exec; the program that spawned another one
  // notes only when it was about to. The kernel's numbers are those of the first PID
  // namespace.
  if (process.pid_namespace != 0) return;
  const int64_t kernel_ns =
      take_exec(kernel_execs_[process.pid], process.start_ns).time_ns;
  if (kernel_ns != INT64_MIN && kernel_ns >= process.exec_ns) {
    process.exec_ns = kernel_ns;
    process.exec_within_ns = 0;
  }
}

// `seen_ns`: when an earlier process with its pid was last seen.
void ProcessLives::set_earliest(const Session& session, ProcessIndex index,
                                int64_t seen_ns, Process& process) const {
  // An older process has begun in an earlier file, which has the times of its begin.
  const bool is_older =
      session.resumed && process.exec_ns == INT64_MIN && process.start_ns < started_ns_;
  if (is_older) {
    process.main_ns = INT64_MAX;
    process.tracer_starts.clear();
  }
  const auto age = ages_ns_.find(index);
  if (age == ages_ns_.end() || is_older) return;
  const int64_t age_ns = std::min(age->second, kAgeMaxNs);
  const int64_t born_ns =
      process.start_ns < INT64_MIN + age_ns ? INT64_MIN : process.start_ns - age_ns;
  // A process that may be older than the session and was not seen to call main joined
  // while it ran.
  process.ran_before =
      born_ns < 0 && process.main_ns == INT64_MAX && process.exec_ns == INT64_MIN;
  if (born_ns >= 0 || process.main_ns != INT64_MAX) {
    process.earliest_ns = std::min(std::max(born_ns, seen_ns), process.start_ns);
  }
}

// Notes how the recorder's command ended, in the last program that it executed. None of
// its threads outlived that, though the collector may have seen their ends much later.
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

// Notes the ends that processes did not record themselves: those of all their threads.
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

// Drops waiting calls that had not lasted long enough at the end to be recorded.
void ProcessLives::drop_short_calls(Definitions& definitions) const {
  for (ThreadIndex i = 0; i < definitions.threads().size(); ++i) {
    Thread& thread = *definitions.mutable_thread(i);
    if (thread.waiting.empty()) continue;
    const int64_t end_ns = std::min(
        {definitions.life_end_ns(i), finished_ns_, definitions.known_until_ns()});
    std::erase_if(thread.waiting, [&](const WaitingCall& call) {
      return end_ns < INT64_MIN + thread.waiting_min_ns ||
             call.time_ns > end_ns - thread.waiting_min_ns;
    });
  }
}

}  // namespace arctrace::reader
