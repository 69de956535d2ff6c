// Builds the session's facts, clock and definitions from the records that have them.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "reader/trace/definitions.hpp"
#include "reader/trace/findings.hpp"
#include "reader/trace/record.hpp"
#include "reader/trace/session.hpp"

namespace arctrace::reader {

// The begins and ends of processes and threads, as the collector's records, the kernel's
// records and the definitions tell them together. Collects the facts of single records,
// and gives them to processes and threads when all definitions are known.
class ProcessLives {
 public:
  // Notes that a process with this number was about to execute a program, at `time_ns` or
  // up to `within_ns` later.
  void add_exec(uint32_t pid, int64_t time_ns, uint64_t within_ns) {
    execs_[pid].push_back({time_ns, within_ns});
  }
  // Notes that the kernel saw the process execute a program.
  void add_kernel_exec(uint32_t pid, int64_t time_ns) {
    kernel_execs_[pid].push_back({time_ns, 0});
  }
  // Sets how old a process was when it joined.
  void set_age(ProcessIndex process, int64_t age_ns) { ages_ns_[process] = age_ns; }
  // Notes when the recording began or was finished. It went on in another file unless
  // note_totals() says that this file is the recording's last.
  void note_started(int64_t time_ns) { started_ns_ = time_ns; }
  void note_finished(int64_t time_ns) { finished_ns_ = time_ns; }
  void note_totals() { has_session_totals_ = true; }
  // Notes that the recorder's command ended.
  void note_child_end(uint32_t pid, int64_t time_ns) { ended_child_ = {pid, time_ns}; }

  // To be called once, after the last definition. Gives each program the exec from which
  // it began, the last one of its pid before it joined. A process of that pid that joined
  // in between has another one. A program without one ran before it joined, but not
  // before the session, nor before the end of what its process executed before.
  void finish(const Session& session, Definitions& definitions);

 private:
  // The exec of a program, at `time_ns` or up to `within_ns` later.
  struct Exec {
    int64_t time_ns = INT64_MIN;
    uint64_t within_ns = 0;
    bool operator<(const Exec& other) const {
      return time_ns != other.time_ns ? time_ns < other.time_ns
                                      : within_ns < other.within_ns;
    }
  };
  static Exec take_exec(std::vector<Exec>& execs, int64_t start_ns);

  // Returns the programs that were executed, in the order in which they joined.
  std::vector<ProcessIndex> begin_programs(const Session& session,
                                           Definitions& definitions) const;
  void set_execs(Process& process);
  void set_earliest(const Session& session, ProcessIndex index, int64_t seen_ns,
                    Process& process) const;
  void drop_short_calls(Definitions& definitions) const;
  void end_command(const Session& session, Definitions& definitions) const;
  static void note_deaths(Definitions& definitions);

  // By pid: the execs that programs noted, and those of the kernel's records.
  absl::flat_hash_map<uint32_t, std::vector<Exec>> execs_, kernel_execs_;
  absl::flat_hash_map<ProcessIndex, int64_t> ages_ns_;
  int64_t started_ns_ = INT64_MIN, finished_ns_ = INT64_MAX;
  struct {
    uint32_t pid = 0;
    int64_t time_ns = 0;
  } ended_child_;                    // of CHILD_STATUS
  bool has_session_totals_ = false;  // the last file of a recording has them
};

// Returns the order in which records are applied: processes before their threads, and
// these before what belongs to them. TOTALS name only threads and processes that no
// definition names.
int build_order(uint16_t type);

// Applies the records of definitions and of the collector, one by one, to the facts of a
// trace's session, processes and threads. REQUIRES: bodies were checked for their type,
// and come in build_order().
class DefinitionsBuilder {
 public:
  DefinitionsBuilder(Session& session, const ClockMap& clock, Definitions& definitions,
                     WriterOutcomes& fates, FindingLog& findings)
      : session_(session),
        clock_(clock),
        definitions_(definitions),
        outcomes_(fates),
        findings_(findings) {}

  // `chunk` and `offset`: the place of the record, for findings.
  void apply(uint16_t type, uint32_t writer, uint64_t ticks, BodyReader body,
             uint64_t chunk, uint32_t offset);

  // Notes that the kernel saw the process with this number execute a program.
  void add_kernel_exec(uint32_t pid, uint64_t monotonic_ns) {
    lives_.add_kernel_exec(pid, clock_.to_ns(clock_.to_ticks(monotonic_ns)));
  }

  // To be called after the last record.
  void finish();

 private:
  void report(Rule rule, std::string message) {
    findings_.add(rule, std::move(message), chunk_, offset_);
  }

  ProcessIndex owner(uint32_t id);
  void process(BodyReader reader);
  void thread(BodyReader reader);
  std::string first_path(const arctrace_module_body& body,
                         const std::vector<std::byte>& build_id, std::string_view path);
  void module(BodyReader reader);
  void module_gone(BodyReader reader);
  void string(BodyReader reader);
  void layout(BodyReader reader);
  void process_end(BodyReader reader);
  void phase(BodyReader reader);
  void age(BodyReader reader);
  void waiting(BodyReader reader);
  void patches(BodyReader reader);
  void inherited(BodyReader reader);
  void hooked(BodyReader reader);
  void exec(BodyReader reader, uint64_t ticks);
  void pid_namespace(BodyReader reader);
  void code(BodyReader reader);
  void code_file(BodyReader reader);
  void system(BodyReader reader);
  void writer_end(BodyReader reader);
  void alive(BodyReader reader);
  void hook_costs(BodyReader reader);
  void clock_word(BodyReader reader);
  void session_event(BodyReader reader);
  void totals(BodyReader reader);
  void counts(BodyReader reader);
  void child_status(BodyReader reader);
  void enabled(BodyReader reader);
  void lost(BodyReader reader);

  Session& session_;
  const ClockMap& clock_;
  Definitions& definitions_;
  WriterOutcomes& outcomes_;
  FindingLog& findings_;
  ProcessLives lives_;
  // By device, inode and build ID.
  std::map<std::tuple<uint64_t, uint64_t, std::vector<std::byte>>, std::string>
      module_paths_;
  std::optional<int64_t>
      kernel_off_ns_;  // since when no records of the kernel's are made
  // The following are of the record that is being applied.
  int64_t time_ns_ = 0;
  uint32_t writer_ = 0;
  uint64_t chunk_ = 0;
  uint32_t offset_ = 0;
};

// Takes the records of all definitions blocks and RECORDS chunks, in any order, and then
// builds all facts from them. It has a copy of each until then.
class DefinitionsLoader {
 public:
  // REQUIRES: the record is of class kDefinition or kCollector, or a LOST of the
  // collector's, and its body is valid.
  void add_untrusted(const RawRecord& record, uint64_t chunk);

  // Notes that, by the kernel's records, this process executed a program.
  void add_kernel_exec(uint32_t pid, uint64_t monotonic_ns);

  // To be called once: fills in session, clock and definitions, and which writers the
  // collector saw die.
  void build(Session& session, ClockMap& clock, Definitions& definitions,
             WriterOutcomes& fates, FindingLog& findings);

 private:
  struct DeferredRecord {
    uint64_t ticks;
    uint64_t chunk;
    uint32_t offset;
    uint16_t type;
    uint32_t writer;
    std::vector<std::byte> body;
  };

  void build_clock(ClockMap& clock, FindingLog& findings) const;
  std::vector<DeferredRecord> deferred_;
  std::vector<std::pair<uint32_t, uint64_t>> kernel_execs_;
};

}  // namespace arctrace::reader
