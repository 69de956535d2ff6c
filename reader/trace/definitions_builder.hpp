// Applies the records of definitions and of the collector, one by one, to what a trace
// knows of its session, processes and threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "reader/trace/bytes.hpp"
#include "reader/trace/clock_map.hpp"
#include "reader/trace/definitions.hpp"
#include "reader/trace/finding_log.hpp"
#include "reader/trace/process_lives.hpp"
#include "reader/trace/session.hpp"
#include "reader/trace/writer_fates.hpp"

namespace arctrace::reader {

// Processes before their threads before what belongs to them. TOTALS name those threads
// and processes that no definition names.
int build_order(uint16_t type);

// REQUIRES: bodies were checked for their type, and come in build_order().
class DefinitionsBuilder {
 public:
  DefinitionsBuilder(Session& session, const ClockMap& clock, Definitions& definitions,
                     WriterFates& fates, FindingLog& findings)
      : session_(session),
        clock_(clock),
        definitions_(definitions),
        fates_(fates),
        findings_(findings) {}

  // `chunk` and `offset` are where the record stands, for findings.
  void apply(uint16_t type, uint32_t writer, uint64_t ticks, BodyReader body,
             uint64_t chunk, uint32_t offset);

  // The kernel saw that the process with this number executed a program.
  void add_kernel_exec(uint32_t pid, uint64_t monotonic_ns) {
    lives_.add_kernel_exec(pid, clock_.to_ns(clock_.to_ticks(monotonic_ns)));
  }

  // After the last record.
  void finish();

 private:
  void report(Rule rule, std::string message) {
    findings_.add(rule, std::move(message), chunk_, offset_);
  }

  ProcessIndex owner(uint32_t id);
  void process(BodyReader reader);
  void thread(BodyReader reader);
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
  void session_event(BodyReader reader);
  void totals(BodyReader reader);
  void counts(BodyReader reader);
  void child_status(BodyReader reader);
  void enabled(BodyReader reader);
  void lost(BodyReader reader);

  Session& session_;
  const ClockMap& clock_;
  Definitions& definitions_;
  WriterFates& fates_;
  FindingLog& findings_;
  ProcessLives lives_;
  std::optional<int64_t>
      kernel_off_ns_;  // since then no records of the kernel's are made
  // Of the record that is being applied.
  int64_t time_ns_ = 0;
  uint32_t writer_ = 0;
  uint64_t chunk_ = 0;
  uint32_t offset_ = 0;
};

}  // namespace arctrace::reader
