// When processes and threads began and ended, as the collector's records, the kernel's
// records and the definitions say together.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <vector>

#include "reader/trace/clock_map.hpp"
#include "reader/trace/definitions.hpp"
#include "reader/trace/session.hpp"

namespace arctrace::reader {

// Takes what single records say, and gives it to processes and threads when all
// definitions are there.
class ProcessLives {
 public:
  // A process with this number was about to execute a program, at `time_ns` or up to
  // `within_ns` later.
  void add_exec(uint32_t pid, int64_t time_ns, uint64_t within_ns) {
    execs_[pid].push_back({time_ns, within_ns});
  }
  // The kernel saw that it executed one.
  void add_kernel_exec(uint32_t pid, int64_t time_ns) {
    kernel_execs_[pid].push_back({time_ns, 0});
  }
  // How old a process was when it joined.
  void set_age(ProcessIndex process, int64_t age_ns) { ages_ns_[process] = age_ns; }
  // The recording began, was finished, or went on elsewhere unless `note_totals()` says
  // that this file is the recording's last.
  void note_started(int64_t time_ns) { started_ns_ = time_ns; }
  void note_finished(int64_t time_ns) { finished_ns_ = time_ns; }
  void note_totals() { has_session_totals_ = true; }
  // The recorder's command ended.
  void note_child_end(uint32_t pid, int64_t time_ns) { ended_child_ = {pid, time_ns}; }

  // After the last definition: gives each program the exec from which it began, the last
  // one of its pid before it joined. A process of that pid that joined in between has
  // another one. A program without one was there before it joined, but not before the
  // session, nor before the end of what its process executed before. Once.
  void finish(const Session& session, Definitions& definitions);

 private:
  // When a program was executed: then, or up to `within_ns` later.
  struct Exec {
    int64_t time_ns = INT64_MIN;
    uint64_t within_ns = 0;
    bool operator<(const Exec& other) const {
      return time_ns != other.time_ns ? time_ns < other.time_ns
                                      : within_ns < other.within_ns;
    }
  };
  static Exec take_exec(std::vector<Exec>& execs, int64_t start_ns);

  // The programs that were executed, in the order in which they joined.
  std::vector<ProcessIndex> begin_programs(const Session& session,
                                           Definitions& definitions) const;
  void set_execs(Process& process);
  void set_earliest(const Session& session, ProcessIndex index, int64_t seen_ns,
                    Process& process) const;
  void drop_short_calls(Definitions& definitions) const;
  void end_command(const Session& session, Definitions& definitions) const;
  static void note_deaths(Definitions& definitions);

  // By pid: as programs noted them, and as the kernel's records have them.
  absl::flat_hash_map<uint32_t, std::vector<Exec>> execs_, kernel_execs_;
  absl::flat_hash_map<ProcessIndex, int64_t> ages_ns_;
  int64_t started_ns_ = INT64_MIN, finished_ns_ = INT64_MAX;
  struct {
    uint32_t pid = 0;
    int64_t time_ns = 0;
  } ended_child_;                    // of CHILD_STATUS
  bool has_session_totals_ = false;  // the last file of a recording has them
};

}  // namespace arctrace::reader
