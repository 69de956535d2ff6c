// What the C interface says of an open trace: copies, so that callers may read them while
// a cursor's thread reads the trace.
#pragma once

#include <arctrace/reader.h>

#include <array>
#include <deque>
#include <string>
#include <vector>

#include "reader/trace/trace.hpp"

namespace arctrace::reader {

class TraceFacts {
 public:
  explicit TraceFacts(const Trace& trace);
  TraceFacts(const TraceFacts&) = delete;
  TraceFacts& operator=(const TraceFacts&) = delete;

  // Takes the sums of the last read() and its findings.
  void sum_up(const Trace& trace);

  const arctrace_reader_facts& facts() const { return facts_; }
  const std::vector<arctrace_reader_process>& processes() const { return processes_; }
  const std::vector<arctrace_reader_thread>& threads() const { return threads_; }
  const std::deque<arctrace_reader_finding>& findings() const { return findings_; }

 private:
  const char* keep(std::string text);
  void add_process(const Trace& trace, const Process& process);
  void add_thread(const Trace& trace, ThreadIndex index);
  void add_findings(const Trace& trace);

  std::deque<std::string> texts_;
  std::deque<std::vector<const char*>> lists_;
  arctrace_reader_facts facts_{};
  std::array<uint64_t, kLossCauses> lost_by_cause_{};
  std::vector<arctrace_reader_process> processes_;
  std::vector<arctrace_reader_thread> threads_;
  std::deque<arctrace_reader_finding> findings_;  // their addresses stay
};

}  // namespace arctrace::reader
