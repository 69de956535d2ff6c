// Groups exclusive blocks by their writers, collects the writers of shared ones, and
// adds those that have no definition.
#include "reader/trace/block_writers.hpp"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "reader/trace/record_types.hpp"

namespace arctrace::reader {

// ---- Exclusive blocks -------------------------------------------------------------

std::vector<std::vector<BlockRef>> group_exclusive(std::span<const BlockRef> blocks) {
  std::vector<std::vector<BlockRef>> exclusive;
  absl::flat_hash_map<uint32_t, size_t> index_of;  // writer -> index into `exclusive`
  for (const BlockRef& block : blocks) {
    if (block.kind != BlockRef::Kind::kExclusive) continue;
    const auto [entry, is_new] = index_of.try_emplace(block.writer, exclusive.size());
    if (is_new) exclusive.emplace_back();
    exclusive[entry->second].push_back(block);
  }
  for (std::vector<BlockRef>& list : exclusive) {
    std::sort(list.begin(), list.end(), [](const BlockRef& a, const BlockRef& b) {
      return std::tie(a.serial, a.handout) < std::tie(b.serial, b.handout);
    });
  }
  return exclusive;
}

void check_serials(std::span<const BlockRef> blocks, const Session& session,
                   FindingLog& findings) {
  const bool may_have_gaps = session.raw || !session.finished || session.resumed ||
                             session.mode == ARCTRACE_MODE_OVERWRITE;
  uint64_t expected = session.resumed ? blocks.front().serial : 0;
  for (const BlockRef& block : blocks) {
    if (block.serial < expected || (block.serial > expected && !may_have_gaps)) {
      findings.add(Rule::kBlockSerial,
                   absl::StrCat("writer ", block.writer, ": serial ", block.serial,
                                " where ", expected, " should be"),
                   block.chunk);
    }
    expected = block.serial + 1;
  }
}

// ---- The writers of shared blocks -------------------------------------------------

namespace {

// Returns the number of a kernel record's process; 0 for other records.
uint32_t tgid_untrusted(const RawRecord& record) {
  if (class_of(record.type) != RecordClass::kKernel) return 0;
  return load_part_untrusted<arctrace_kernel_body>(record.body).tgid;
}

// Returns the name in a record of type NAMED or EXECED, which has the same body.
std::string name_untrusted(const RawRecord& record) {
  const auto body = load_part_untrusted<arctrace_named_body>(record.body);
  const std::string name(body.name, sizeof body.name);
  return name.substr(0, name.find('\0'));
}

}  // namespace

void SharedWriters::add_untrusted(const RawRecord& record, const BlockRef& block) {
  const auto [entry, is_new] = writers_.try_emplace(record.writer);
  SharedFacts& writer = entry->second;
  if (is_new) writer.tgid = tgid_untrusted(record);
  if (record.type == ARCTRACE_TYPE_NAMED || record.type == ARCTRACE_TYPE_EXECED) {
    writer.name = name_untrusted(record);
    writer.is_foreign |= record.type == ARCTRACE_TYPE_NAMED;
  }
  if (record.type == ARCTRACE_TYPE_EXECED) executed_.insert(tgid_untrusted(record));
  if (record.type == ARCTRACE_TYPE_FORKED) {
    const auto body = load_part_untrusted<arctrace_forked_body>(record.body);
    if (body.child_tgid != body.tgid) {
      forkers_[body.child_tgid] = {body.tgid, record.ticks};
    }
  }
  if (record.type == ARCTRACE_TYPE_NUMBERED) {
    const auto body = load_part_untrusted<arctrace_numbered_body>(record.body);
    numbered_[body.child_tid] = {body.pid_namespace, body.own_tid};
  }
  if (record.type == ARCTRACE_TYPE_INTERRUPT) {
    const uint32_t cpu = load_part_untrusted<arctrace_kernel_body>(record.body).cpu;
    if (cpu < ARCTRACE_CPU_COUNT_MAX) interrupted_cpus_.insert(cpu);
  }
  if (block.of_kernel()) return;
  writer.first_ticks = std::min(writer.first_ticks, record.ticks);
}

void SharedWriters::add(uint32_t writer, uint64_t first_ticks) {
  SharedFacts& facts = writers_[writer];
  facts.first_ticks = std::min(facts.first_ticks, first_ticks);
}

std::vector<uint32_t> SharedWriters::sorted() const {
  std::vector<uint32_t> sorted;
  sorted.reserve(writers_.size());
  for (const auto& [writer, facts] : writers_) sorted.push_back(writer);
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

// ---- Writers without a definition -------------------------------------------------

namespace {

void add_unknown_process(const BlockRef& block, const Session& session,
                         Definitions& definitions, FindingLog& findings) {
  if (block.process == 0 || definitions.find_process(block.process) != kNoIndex) return;
  if (!session.may_lack_definitions) {
    findings.add(Rule::kDefinitionProcess, absl::StrCat("process ", block.process),
                 block.chunk);
  }
  Process process;
  process.id = block.process;
  process.pid = block.pid;
  definitions.add_process(std::move(process));
}

// Finds the processes of threads that only the kernel's records tell.
class SilentProcesses {
 public:
  SilentProcesses(const SharedWriters& shared, uint32_t recorder, const ClockMap& clock,
                  Definitions& definitions)
      : shared_(shared), recorder_(recorder), clock_(clock), definitions_(definitions) {
    // The kernel names threads of processes that are not recorded; the recorder is one.
    foreign_.insert(recorder);
    for (const auto& [writer, facts] : shared.all()) {
      if (facts.is_foreign) foreign_.insert(facts.tgid);
    }
    const std::span<const Process> processes = definitions.processes();
    for (ProcessIndex i = 0; i < processes.size(); ++i) {
      processes_[{processes[i].pid_namespace, processes[i].pid}].push_back(i);
      for (const uint32_t pid : processes[i].helpers) {
        helpers_.insert({processes[i].pid_namespace, pid});
      }
    }
    for (const Thread& thread : definitions.threads()) {
      const Process* process = definitions.process(thread.process);
      threads_.insert({process == nullptr ? 0 : process->pid_namespace, thread.tid});
    }
  }

  bool is_foreign(const SharedFacts& facts) const {
    return facts.is_foreign || foreign_.contains(facts.tgid) || is_helper(facts.tgid);
  }

  // Sets the thread's process, and its name if it has none, if the process is recorded.
  void place(Thread& thread) {
    const bool is_idle = thread.tid == 0;
    const auto own = processes_.find(shared_.own_number(thread.tgid));
    const bool has_records = own != processes_.end();
    thread.is_silent = !thread.is_foreign && !is_idle &&
                       (has_records || shared_.is_recorded(thread.tgid, recorder_));
    if (!thread.is_silent) return;
    // The first thread of its process would begin with that process' lifetime.
    const bool is_other = !has_records || thread.tid != thread.tgid;
    if (!is_other) thread.process = process_before_exec(thread.tgid, own->second);
    if (!is_other && thread.process != kNoIndex) {
      thread.names.clear();  // the kernel told that of the program that came later
      return;
    }
    if (is_other && !threads_.contains(shared_.own_number(thread.tid))) {
      // If several processes had the number, the last one counts.
      thread.process = has_records ? own->second.back() : process_of_kernel(thread.tgid);
    }
    const std::string name = name_of(thread.tgid);
    if (thread.names.empty() && !name.empty()) thread.names.push_back({INT64_MIN, name});
  }

 private:
  // Whether the process is a tracer's own, or was started by one of these.
  bool is_helper(uint32_t tgid) const {
    constexpr int kForksMax = 4;  // more than helpers make
    if (helpers_.empty()) return false;
    for (int i = 0; i < kForksMax; ++i) {
      const OwnNumber number = shared_.own_number(tgid);
      if (processes_.contains(number)) return false;  // it has written records
      if (helpers_.contains(number)) return true;
      const std::optional<SharedWriters::Fork> fork = shared_.fork_of(tgid);
      if (!fork.has_value()) return false;
      tgid = fork->forker;
    }
    return false;
  }

  // Returns the last name of the first thread, which is that of its program, cut short.
  std::string name_of(uint32_t tgid) const {
    const auto found = shared_.all().find(ARCTRACE_WRITER_KERNEL | tgid);
    return found == shared_.all().end() ? "" : found->second.name.value_or("");
  }

  ProcessIndex process_of_kernel(uint32_t tgid) {
    Process process;
    process.id = ARCTRACE_WRITER_KERNEL | tgid;
    process.pid = tgid;
    process.executable = name_of(tgid);
    return definitions_.add_process(std::move(process));
  }

  // Adds the process that a fork child is until it executes the first of the programs
  // `later`, which have its number and records. kNoIndex: it has written records before,
  // or nothing tells that it was forked by a process that is recorded.
  ProcessIndex process_before_exec(uint32_t tgid,
                                   const std::vector<ProcessIndex>& later) {
    const std::span<const Process> processes = definitions_.processes();
    const std::optional<SharedWriters::Fork> fork = shared_.fork_of(tgid);
    if (!fork.has_value() || foreign_.contains(fork->forker)) return kNoIndex;
    const int64_t forked_ns = clock_.to_ns(clock_.to_ticks(fork->monotonic_ns));
    const auto is_earlier = [&](ProcessIndex a, ProcessIndex b) {
      return processes[a].start_ns < processes[b].start_ns;
    };
    const Process& first =
        processes[*std::min_element(later.begin(), later.end(), is_earlier)];
    if (first.origin != ARCTRACE_ORIGIN_EXEC || first.begin_ns() < forked_ns) {
      return kNoIndex;
    }
    Process process;
    process.id = ARCTRACE_WRITER_KERNEL | tgid;
    process.pid = tgid;
    process.ppid = fork->forker;
    process.start_ns = forked_ns;
    process.end_how = ARCTRACE_END_EXEC;
    process.end_ns = first.begin_ns();
    // It is a copy of the program that its parent was then.
    const auto forkers = processes_.find(shared_.own_number(fork->forker));
    if (forkers != processes_.end()) {
      for (const ProcessIndex i : forkers->second) {
        if (processes[i].start_ns > forked_ns) continue;
        process.parent_id = processes[i].id;
        process.executable = processes[i].executable;
        process.arguments = processes[i].arguments;
      }
    }
    return definitions_.add_process(std::move(process));
  }

  const SharedWriters& shared_;
  const uint32_t recorder_;
  const ClockMap& clock_;
  Definitions& definitions_;
  absl::flat_hash_set<uint32_t> foreign_;
  // The processes that have written records, and those with the same number.
  absl::flat_hash_map<OwnNumber, std::vector<ProcessIndex>> processes_;
  absl::flat_hash_set<OwnNumber> threads_;
  absl::flat_hash_set<OwnNumber> helpers_;
};

void add_interrupt_threads(const SharedWriters& shared, Definitions& definitions) {
  for (const uint32_t cpu : shared.interrupted_cpus()) {
    Thread thread;
    thread.writer = kInterruptsWriter + cpu;
    if (definitions.find_thread(thread.writer) != kNoIndex) continue;
    thread.tid = cpu;
    thread.is_foreign = true;
    thread.interrupts_of = cpu;
    thread.names.push_back({INT64_MIN, absl::StrCat("Interrupt CPU ", cpu)});
    definitions.add_thread(std::move(thread));
  }
}

}  // namespace

void add_unknown_writers(std::span<const std::vector<BlockRef>> exclusive,
                         const SharedWriters& shared, const Session& session,
                         const ClockMap& clock, Definitions& definitions,
                         FindingLog& findings) {
  const auto report = [&](uint32_t writer, uint64_t chunk) {
    if (session.may_lack_definitions) return;
    findings.add(Rule::kRecordWriter, absl::StrCat("writer ", writer), chunk);
  };
  // A thread that only its TOTALS name lacks its THREAD record.
  const auto is_undefined = [&](uint32_t writer) {
    const Thread* thread = definitions.thread(definitions.find_thread(writer));
    return thread != nullptr && !thread->of_kernel() && thread->ended_unseen &&
           thread->names.empty();
  };
  for (const std::vector<BlockRef>& blocks : exclusive) {
    const BlockRef& block = blocks.front();
    if (definitions.find_thread(block.writer) != kNoIndex) {
      if (is_undefined(block.writer)) report(block.writer, block.chunk);
      continue;
    }
    report(block.writer, block.chunk);
    add_unknown_process(block, session, definitions, findings);
    Thread thread;
    thread.writer = block.writer;
    thread.process = definitions.find_process(block.process);
    thread.tid = block.tid;
    thread.start_ns = clock.to_ns(block.base_ticks);
    definitions.add_thread(std::move(thread));
  }
  // Writers are sorted, so that threads have the same numbers each time. The kernel's
  // come last: by then all that have written records are known.
  std::optional<SilentProcesses> silent;
  for (const uint32_t writer : shared.sorted()) {
    if (definitions.find_thread(writer) != kNoIndex) {
      if (is_undefined(writer)) report(writer, 0);
      continue;
    }
    Thread thread;
    thread.writer = writer;
    if (thread.of_kernel()) {
      thread.tid = writer & ~ARCTRACE_WRITER_KERNEL;
      const SharedFacts& facts = shared.all().at(writer);
      thread.tgid = facts.tgid;
      if (!silent.has_value()) {
        silent.emplace(shared, session.creator_pid, clock, definitions);
      }
      thread.is_foreign = silent->is_foreign(facts);
      if (facts.name.has_value()) thread.names.push_back({INT64_MIN, *facts.name});
      silent->place(thread);
    } else {
      report(writer, 0);
    }
    definitions.add_thread(std::move(thread));
  }
  add_interrupt_threads(shared, definitions);
}

}  // namespace arctrace::reader
