// The rules about references of records: that names and events are defined, and that
// events are laid out as defined.
#pragma once

#include <absl/container/flat_hash_set.h>

#include <cstdint>
#include <utility>

#include "reader/trace/definitions.hpp"
#include "reader/trace/record.hpp"
#include "reader/trace/trace.hpp"

namespace arctrace::reader {

// Adds a finding to the trace for each record that breaks rule D4 or D5; each undefined
// id of a process leads to one finding.
class ContentChecker {
 public:
  explicit ContentChecker(Trace& trace) : trace_(trace) {}

  // To be called for every record of the trace.
  void check_untrusted(const Record& record);

 private:
  void check_key(const Record& record, uint64_t key);
  void check_name(const Record& record, uint32_t id);
  void check_event(const Record& record);
  void report_undefined(const Record& record, const char* what, uint32_t id);
  ProcessIndex process_of(const Record& record) const;

  Trace& trace_;
  // By process and id: those that are known to be defined or led to a finding.
  absl::flat_hash_set<std::pair<ProcessIndex, uint32_t>> names_done_, events_done_;
};

}  // namespace arctrace::reader
