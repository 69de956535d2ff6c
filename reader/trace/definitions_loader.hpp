// Builds the session's facts, clock and definitions from the records that have them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reader/trace/clock_map.hpp"
#include "reader/trace/definitions.hpp"
#include "reader/trace/finding_log.hpp"
#include "reader/trace/record_cursor.hpp"
#include "reader/trace/session.hpp"
#include "reader/trace/writer_fates.hpp"

namespace arctrace::reader {

// Takes the records of all definitions blocks and RECORDS chunks, in any order, and then
// builds the whole from them. It holds a copy of each until then.
class DefinitionsLoader {
 public:
  // REQUIRES: the record is of class kDefinition or kCollector, or a LOST of the
  // collector's, and its body is valid.
  void add_untrusted(const RawRecord& record, uint64_t chunk);

  // The kernel's records say that this process executed a program.
  void add_kernel_exec(uint32_t pid, uint64_t monotonic_ns);

  // Fills in session, clock and definitions, and which writers the collector saw die.
  // Once.
  void build(Session& session, ClockMap& clock, Definitions& definitions,
             WriterFates& fates, FindingLog& findings);

 private:
  struct Held {
    uint64_t ticks;
    uint64_t chunk;
    uint32_t offset;
    uint16_t type;
    uint32_t writer;
    std::vector<std::byte> body;
  };

  void build_clock(ClockMap& clock, FindingLog& findings) const;
  std::vector<Held> held_;
  std::vector<std::pair<uint32_t, uint64_t>> kernel_execs_;
};

}  // namespace arctrace::reader
