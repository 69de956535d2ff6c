// What a buffer in overwrite mode still held when it was copied: the time of which the
// records of all threads are there.
#pragma once

#include <cstdint>
#include <optional>

#include "reader/trace/definitions.hpp"
#include "reader/trace/session.hpp"

namespace arctrace::reader {

struct KeptSpan {
  int64_t from_ns = 0;   // before it, records of some thread were overwritten
  int64_t until_ns = 0;  // when the copy began

  uint64_t ns() const {
    return until_ns <= from_ns
               ? 0
               : static_cast<uint64_t>(until_ns) - static_cast<uint64_t>(from_ns);
  }
};

// nullopt: the trace is no copy of a buffer, or no record was overwritten. The trace has
// to be opened, but not read.
std::optional<KeptSpan> kept_span(const Session& session, const Definitions& definitions);

}  // namespace arctrace::reader
