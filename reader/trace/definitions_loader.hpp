// Collects what defines the session's processes, threads, names, modules and clock.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reader/trace/block_index.hpp"
#include "reader/trace/clock_map.hpp"
#include "reader/trace/definitions.hpp"
#include "reader/trace/emitter.hpp"
#include "reader/trace/finding_log.hpp"
#include "reader/trace/record_cursor.hpp"
#include "reader/trace/trace.hpp"

namespace arctrace::reader {

// Takes the records of all definitions blocks and RECORDS chunks, in any order, then
// builds from them what they mean together.
class DefinitionsLoader {
 public:
  // Keeps a copy of a valid record of class kDefinition or kCollector.
  void add_untrusted(const RawRecord& record, uint64_t place);

  // Fills in session facts, clock and definitions, and the fate of writers seen gone.
  void build(Session& session, ClockMap& clock, Definitions& definitions,
             WriterFates& fates, FindingLog& findings);

 private:
  struct Held {
    uint64_t ticks;
    uint64_t place;
    uint32_t offset;
    uint16_t type;
    std::vector<std::byte> body;
  };

  void build_clock(ClockMap& clock, FindingLog& findings) const;
  std::vector<Held> held_;
};

}  // namespace arctrace::reader
