#include "reader/trace/definitions_loader.hpp"

#include <absl/container/flat_hash_map.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "reader/trace/bytes.hpp"
#include "reader/trace/record_types.hpp"

namespace arctrace::reader {
namespace {

// "a\0b\0" is {"a", "b"}, and so is "a\0b", of which the end was cut off.
std::vector<std::string> split_arguments(std::string_view joined) {
  if (!joined.empty() && joined.back() == '\0') joined.remove_suffix(1);
  if (joined.empty()) return {};
  return absl::StrSplit(absl::string_view(joined.data(), joined.size()), '\0');
}

// A program that changes its title writes that over its arguments, and zeros up to their
// former end.
void drop_rest_of_title(std::vector<std::string>& arguments) {
  while (arguments.size() > 1 && arguments.back().empty()) arguments.pop_back();
}

// Processes before their threads before what belongs to them.
int build_order(uint16_t type) {
  if (type == ARCTRACE_TYPE_PROCESS) return 0;
  if (type == ARCTRACE_TYPE_THREAD) return 1;
  return 2;
}

// Applies definitions one by one. REQUIRES: bodies were checked for their type.
class Builder {
 public:
  Builder(Session& session, const ClockMap& clock, Definitions& definitions,
          WriterFates& fates, FindingLog& findings)
      : session_(session),
        clock_(clock),
        definitions_(definitions),
        fates_(fates),
        findings_(findings) {}

  void apply(uint16_t type, uint32_t writer, uint64_t ticks, BodyReader body,
             uint64_t chunk, uint32_t offset) {
    writer_ = writer;
    time_ns_ = clock_.to_ns(ticks);
    chunk_ = chunk;
    offset_ = offset;
    switch (type) {
      case ARCTRACE_TYPE_PROCESS:
        return process(body);
      case ARCTRACE_TYPE_THREAD:
        return thread(body);
      case ARCTRACE_TYPE_MODULE:
        return module(body);
      case ARCTRACE_TYPE_MODULE_GONE:
        return module_gone(body);
      case ARCTRACE_TYPE_STRING:
        return string(body);
      case ARCTRACE_TYPE_EVENT_LAYOUT:
        return layout(body);
      case ARCTRACE_TYPE_PROCESS_END:
        return process_end(body);
      case ARCTRACE_TYPE_PHASE:
        return phase(body);
      case ARCTRACE_TYPE_AGE: {
        const auto age = body.read<arctrace_age_body>();
        ages_ns_[owner(age.process)] = static_cast<int64_t>(
            std::min<uint64_t>(age.age_ns, static_cast<uint64_t>(INT64_MAX)));
        return;
      }
      case ARCTRACE_TYPE_WAITING:
        return waiting(body);
      case ARCTRACE_TYPE_EXEC:
        execs_[body.read<arctrace_exec_body>().pid].push_back(time_ns_);
        return;
      case ARCTRACE_TYPE_PID_NAMESPACE:
        return pid_namespace(body);
      case ARCTRACE_TYPE_CODE:
        return code(body);
      case ARCTRACE_TYPE_CODE_FILE:
        return code_file(body);
      case ARCTRACE_TYPE_SYSTEM:
        return system(body);
      case ARCTRACE_TYPE_WRITER_END:
        return writer_end(body);
      case ARCTRACE_TYPE_ALIVE: {
        Thread* thread = definitions_.mutable_thread(
            definitions_.find_thread(body.read<arctrace_alive_body>().writer));
        if (thread != nullptr) thread->alive_ns = std::max(thread->alive_ns, time_ns_);
        return;
      }
      case ARCTRACE_TYPE_SESSION:
        return session_event(body);
      case ARCTRACE_TYPE_TOTALS:
        has_session_totals_ |= writer == ARCTRACE_WRITER_COLLECTOR;
        return;
      case ARCTRACE_TYPE_COUNTS: {
        const auto counts = body.read<arctrace_counts_body>();
        session_.processes = std::max(session_.processes, counts.processes);
        session_.threads = std::max(session_.threads, counts.threads);
        return;
      }
      case ARCTRACE_TYPE_CHILD_STATUS:
        session_.child_wait_status = body.read<arctrace_child_status_body>().status;
        return;
      default:
        return;
    }
  }

  // The kernel saw that the process with this number executed a program.
  void add_kernel_exec(uint32_t pid, uint64_t monotonic_ns) {
    kernel_execs_[pid].push_back(clock_.to_ns(clock_.to_ticks(monotonic_ns)));
  }

  // After the last definition: gives each program the exec from which it began, the last
  // one of its pid before it joined. A process of that pid that joined in between has
  // another one. A program without one was there before it joined, but not before the
  // session, nor before the end of what its process executed before.
  void finish() {
    if (session_.finished && !has_session_totals_) end_at_last_records();
    std::vector<ProcessIndex> order;
    for (ProcessIndex i = 0; i < definitions_.processes().size(); ++i) {
      Process& process = *definitions_.mutable_process(i);
      // A program that was seen to begin has the arguments that it was given.
      if (process.main_ns == INT64_MAX) drop_rest_of_title(process.arguments);
      if (process.origin != ARCTRACE_ORIGIN_FORK) order.push_back(i);
      // It has begun in an earlier file.
      if (session_.resumed && process.forked_ns < started_ns_) {
        process.forked_ns = INT64_MIN;
      }
    }
    std::stable_sort(order.begin(), order.end(), [&](ProcessIndex a, ProcessIndex b) {
      return definitions_.processes()[a].start_ns < definitions_.processes()[b].start_ns;
    });
    drop_short_calls();
    absl::flat_hash_map<uint32_t, int64_t> last_seen_ns;  // by pid
    for (const ProcessIndex index : order) {
      Process& process = *definitions_.mutable_process(index);
      process.exec_ns = take_exec(execs_[process.pid], process.start_ns);
      // The kernel says it to the moment, which was later than a program that was spawned
      // was about to be executed. Its numbers are those of the first PID namespace.
      if (process.pid_namespace == 0) {
        process.exec_ns = std::max(
            process.exec_ns, take_exec(kernel_execs_[process.pid], process.start_ns));
      }
      // It has begun in an earlier file, which has its first time.
      const bool is_older = session_.resumed && process.exec_ns == INT64_MIN &&
                            process.start_ns < started_ns_;
      if (is_older) process.main_ns = INT64_MAX;
      int64_t& seen = last_seen_ns.try_emplace(process.pid, 0).first->second;
      if (const auto age = ages_ns_.find(index); age != ages_ns_.end() && !is_older) {
        const int64_t age_ns = std::min(age->second, kAgeMaxNs);
        const int64_t born_ns =
            process.start_ns < INT64_MIN + age_ns ? INT64_MIN : process.start_ns - age_ns;
        // One that may be older than the session and was not seen to call main has joined
        // as it ran.
        if (born_ns >= 0 || process.main_ns != INT64_MAX) {
          process.earliest_ns = std::min(std::max(born_ns, seen), process.start_ns);
        }
      }
      seen = process.end_ns == INT64_MAX ? process.start_ns : process.end_ns;
    }
  }

 private:
  void report(Rule rule, std::string message) {
    findings_.add(rule, std::move(message), chunk_, offset_);
  }

  static constexpr int64_t kAgeMaxNs = int64_t{1} << 60;

  // The recording went on in another file, which has what threads did after their last
  // records here.
  void end_at_last_records() {
    for (ThreadIndex i = 0; i < definitions_.threads().size(); ++i) {
      Thread& thread = *definitions_.mutable_thread(i);
      if (thread.end_ns == INT64_MAX) thread.ended_unseen = true;
    }
  }

  // A call that still waited at the end counts only if it had lasted long enough then.
  void drop_short_calls() {
    for (ThreadIndex i = 0; i < definitions_.threads().size(); ++i) {
      Thread& thread = *definitions_.mutable_thread(i);
      if (thread.waiting.empty()) continue;
      const int64_t end_ns = std::min(definitions_.life_end_ns(i), finished_ns_);
      std::erase_if(thread.waiting, [&](const WaitingCall& call) {
        return end_ns < INT64_MIN + thread.waiting_min_ns ||
               call.time_ns > end_ns - thread.waiting_min_ns;
      });
    }
  }

  // The last of these times up to `start_ns`, which is taken out with those before it;
  // INT64_MIN: there is none.
  static int64_t take_exec(std::vector<int64_t>& times, int64_t start_ns) {
    std::sort(times.begin(), times.end());
    const auto after = std::upper_bound(times.begin(), times.end(), start_ns);
    if (after == times.begin()) return INT64_MIN;
    const int64_t exec_ns = *(after - 1);
    times.erase(times.begin(), after);
    return exec_ns;
  }

  // The process that a definition belongs to; without a PROCESS record it is added, with
  // a finding.
  ProcessIndex owner(uint32_t id) {
    const ProcessIndex found = definitions_.find_process(id);
    if (found != kNoIndex) return found;
    if (!session_.may_lack_definitions) {
      report(Rule::kDefinitionProcess, absl::StrCat("process ", id));
    }
    Process unknown;
    unknown.id = id;
    return definitions_.add_process(std::move(unknown));
  }

  void process(BodyReader reader) {
    const auto body = reader.read<arctrace_process_body>();
    Process process;
    process.id = body.process;
    process.parent_id = body.parent;
    process.pid = body.pid;
    process.ppid = body.ppid;
    process.uid = body.uid;
    process.origin = body.origin;
    process.start_ns = clock_.to_ns(body.start_ticks);
    process.executable = reader.text(body.executable_size);
    process.arguments = split_arguments(reader.text(body.arguments_size));
    const arctrace_process_fork fork = read_process_fork(reader);
    process.forker = fork.forker;
    if (process.origin == ARCTRACE_ORIGIN_FORK && fork.forked_ticks != 0) {
      process.forked_ns = std::min(clock_.to_ns(fork.forked_ticks), process.start_ns);
    }
    const Process* known = definitions_.process(definitions_.find_process(process.id));
    if (known != nullptr && known->pid != process.pid) {
      report(Rule::kDefinitionId, absl::StrCat("process ", process.id, " is pid ",
                                               known->pid, " and ", process.pid));
    }
    definitions_.add_process(std::move(process));
  }

  void thread(BodyReader reader) {
    const auto body = reader.read<arctrace_thread_body>();
    Thread thread;
    thread.writer = body.writer;
    thread.process = owner(body.process);
    thread.tid = body.tid;
    thread.start_ns = clock_.to_ns(body.start_ticks);
    std::string name(reader.text(body.name_size));
    const ThreadIndex known = definitions_.find_thread(thread.writer);
    if (known == kNoIndex) {
      thread.names.push_back({time_ns_, std::move(name)});
      definitions_.add_thread(std::move(thread));
      return;
    }
    Thread& there = *definitions_.mutable_thread(known);
    if (there.tid != thread.tid || there.process != thread.process) {
      report(Rule::kDefinitionId,
             absl::StrCat("writer ", thread.writer, " is two threads"));
      return;
    }
    if (there.names.back().name != name) {
      there.names.push_back({time_ns_, std::move(name)});
    }
  }

  void module(BodyReader reader) {
    const auto body = reader.read<arctrace_module_body>();
    const ProcessIndex process = owner(body.process);
    Module module;
    module.flags = body.flags;
    module.start = body.start;
    module.end = body.end;
    module.bias = body.bias;
    const auto build_id = reader.bytes(body.build_id_size);
    module.build_id.assign(build_id.begin(), build_id.end());
    module.path = reader.text(body.path_size);
    module.loaded_ns = time_ns_;
    if (module.start >= module.end) {
      report(Rule::kDefinitionModule, "a module's range is empty");
      return;
    }
    definitions_.add_module(process, std::move(module));
  }

  void module_gone(BodyReader reader) {
    const auto body = reader.read<arctrace_module_gone_body>();
    if (definitions_.end_module(owner(body.process), body.start, time_ns_)) return;
    report(Rule::kDefinitionModule,
           absl::StrCat("no module is loaded at 0x", absl::Hex(uint64_t{body.start})));
  }

  void string(BodyReader reader) {
    const auto body = reader.read<arctrace_string_body>();
    const ProcessIndex process = owner(body.process);
    if (definitions_.add_name(process, body.id,
                              std::string(reader.text(body.text_size)))) {
      return;
    }
    report(Rule::kDefinitionId, absl::StrCat("name ", body.id));
  }

  void layout(BodyReader reader) {
    const auto body = reader.read<arctrace_event_layout_body>();
    const ProcessIndex process = owner(body.process);
    EventLayout layout;
    layout.id = body.id;
    layout.level = body.level;
    layout.name = reader.text(body.name_size);
    for (uint32_t i = 0; i < body.field_count && reader.ok(); ++i) {
      const auto field = reader.read<arctrace_layout_field>();
      layout.fields.push_back({field.type, std::string(reader.text(field.name_size))});
    }
    if (definitions_.add_layout(process, std::move(layout))) return;
    report(Rule::kDefinitionId, absl::StrCat("event ", body.id));
  }

  void process_end(BodyReader reader) {
    const auto body = reader.read<arctrace_process_end_body>();
    Process& process = *definitions_.mutable_process(owner(body.process));
    process.end_how = body.how;
    process.end_ns = body.how == ARCTRACE_END_NONE ? INT64_MAX : time_ns_;
    process.end_status = body.status;
    process.end_writer = writer_;
  }

  // Of several, because a child was forked in between or called main, the first counts.
  void phase(BodyReader reader) {
    const auto body = reader.read<arctrace_phase_body>();
    Process& process = *definitions_.mutable_process(owner(body.process));
    int64_t& began = body.phase == ARCTRACE_LIFE_MAIN ? process.main_ns : process.exit_ns;
    began = std::min(began, time_ns_);
  }

  // Of several of a thread, the last counts.
  void waiting(BodyReader reader) {
    const auto body = reader.read<arctrace_waiting_body>();
    owner(body.process);
    Thread* thread = definitions_.mutable_thread(definitions_.find_thread(body.writer));
    if (thread == nullptr) return;
    thread->waiting.clear();
    thread->waiting_since_written = body.written;
    thread->waiting_min_ns =
        std::max(clock_.to_ns(session_.start_ticks + body.ticks_min), int64_t{0});
    for (uint32_t i = 0; i < body.count && reader.ok(); ++i) {
      const auto call = reader.read<arctrace_waiting_call>();
      thread->waiting.push_back({call.key, call.ticks, clock_.to_ns(call.ticks)});
    }
  }

  void pid_namespace(BodyReader reader) {
    const auto body = reader.read<arctrace_pid_namespace_body>();
    Process& process = *definitions_.mutable_process(owner(body.process));
    process.pid_namespace = body.inode;
  }

  void code(BodyReader reader) {
    const auto body = reader.read<arctrace_code_body>();
    Process& process = *definitions_.mutable_process(owner(body.process));
    const uint64_t size = body.size;
    Code code;
    code.start = body.start;
    if (size == 0 || code.start > UINT64_MAX - size) {
      report(Rule::kCodeRange,
             absl::StrCat("0x", absl::Hex(size), " bytes at 0x", absl::Hex(code.start)));
      return;
    }
    code.end = code.start + size;
    code.since_ns = body.since_monotonic_ns == 0
                        ? process.start_ns
                        : clock_.to_ns(clock_.to_ticks(body.since_monotonic_ns));
    code.name = reader.text(body.name_size);
    process.code.push_back(std::move(code));
  }

  void code_file(BodyReader reader) {
    const auto body = reader.read<arctrace_code_file_body>();
    Process& process = *definitions_.mutable_process(owner(body.process));
    CodeFile file;
    file.kind = body.kind;
    file.names = body.names;
    file.left_out = body.left_out;
    file.is_cut = (body.flags & ARCTRACE_CODE_FILE_CUT) != 0;
    file.path = reader.text(body.path_size);
    process.code_files.push_back(std::move(file));
  }

  void system(BodyReader reader) {
    const auto body = reader.read<arctrace_system_body>();
    session_.page_size = body.page_size;
    session_.cpus_online = body.cpus;
    session_.host = reader.text(body.host_size);
    session_.kernel = reader.text(body.kernel_size);
    session_.recorder_command = split_arguments(reader.text(body.arguments_size));
  }

  void writer_end(BodyReader reader) {
    const auto body = reader.read<arctrace_writer_end_body>();
    fates_[body.writer] = WriterFate::kDead;
    Thread* thread = definitions_.mutable_thread(definitions_.find_thread(body.writer));
    // Of several, the first collector saw it best.
    if (thread != nullptr) thread->end_ns = std::min(thread->end_ns, time_ns_);
  }

  void session_event(BodyReader reader) {
    const auto body = reader.read<arctrace_session_body>();
    if (body.what == ARCTRACE_SESSION_FINISHED) {
      session_.finished = true;
      finished_ns_ = time_ns_;
    }
    if (body.what == ARCTRACE_SESSION_STARTED) {
      session_.resumed = (body.detail & ARCTRACE_SESSION_RESUMED) != 0;
      started_ns_ = time_ns_;
    }
    if (body.what == ARCTRACE_SESSION_DISK_FULL) {
      session_.disk_full_errno = static_cast<int32_t>(body.detail);
    }
  }

  Session& session_;
  const ClockMap& clock_;
  Definitions& definitions_;
  WriterFates& fates_;
  FindingLog& findings_;
  // By pid: as programs noted them, and as the kernel's records have them.
  absl::flat_hash_map<uint32_t, std::vector<int64_t>> execs_, kernel_execs_;
  absl::flat_hash_map<ProcessIndex, int64_t> ages_ns_;
  // Of the record that is being applied.
  int64_t time_ns_ = 0;
  uint32_t writer_ = 0;
  int64_t started_ns_ = INT64_MIN, finished_ns_ = INT64_MAX;
  bool has_session_totals_ = false;  // the last file of a recording has them
  uint64_t chunk_ = 0;
  uint32_t offset_ = 0;
};

}  // namespace

void DefinitionsLoader::add_untrusted(const RawRecord& record, uint64_t chunk) {
  held_.push_back({record.ticks,
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
  for (const Held& held : held_) {
    if (held.type != ARCTRACE_TYPE_CLOCK_SYNC) continue;
    const auto body = load_part_untrusted<arctrace_clock_sync_body>(held.body);
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
                              WriterFates& fates, FindingLog& findings) {
  build_clock(clock, findings);
  std::sort(held_.begin(), held_.end(), [](const Held& a, const Held& b) {
    return std::tuple(build_order(a.type), a.ticks, a.chunk, a.offset) <
           std::tuple(build_order(b.type), b.ticks, b.chunk, b.offset);
  });
  // Known before all definitions, also before those that are older than the file.
  for (const Held& held : held_) {
    if (held.type == ARCTRACE_TYPE_TOTALS) {
      const auto body = load_part_untrusted<arctrace_totals_body>(held.body);
      session.may_lack_definitions |= body.lost[ARCTRACE_LOST_DEFINITIONS] != 0;
    }
    if (held.type != ARCTRACE_TYPE_SESSION) continue;
    const auto body = load_part_untrusted<arctrace_session_body>(held.body);
    session.may_lack_definitions |= body.what == ARCTRACE_SESSION_STARTED &&
                                    (body.detail & ARCTRACE_SESSION_ELSEWHERE) != 0;
  }
  Builder builder(session, clock, definitions, fates, findings);
  for (const Held& held : held_) {
    builder.apply(held.type, held.writer, held.ticks, BodyReader(held.body), held.chunk,
                  held.offset);
  }
  for (const auto& [pid, monotonic_ns] : kernel_execs_) {
    builder.add_kernel_exec(pid, monotonic_ns);
  }
  builder.finish();
  held_.clear();
  held_.shrink_to_fit();
}

}  // namespace arctrace::reader
