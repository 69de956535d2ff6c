// The gaps of a trace as rows at the end of each report: reason, of what, from, to,
// records.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reader/streams/json_writer.hpp"
#include "reader/trace/definitions.hpp"
#include "reader/trace/gaps.hpp"

namespace arctrace::reader {

// Keeps the first gaps and counts all of them.
class GapList {
 public:
  // `definitions` must outlive this object.
  explicit GapList(const Definitions& definitions) : definitions_(definitions) {}

  void add(const Gap& gap);

  // The longest one of which records are lost, if its beginning is known.
  const std::optional<Gap>& longest() const { return longest_; }

  // A table of the first few gaps; empty if there are none.
  std::string text() const;

  // Members "gaps", an array, and "gaps_left_out", of the object that is open.
  void write_json(JsonWriter& json) const;

 private:
  const Definitions& definitions_;
  std::vector<Gap> kept_;
  std::optional<Gap> longest_;
  uint64_t count_ = 0;
};

// Members reason, pid, tid, cpu, from_ns (null: not known), to_ns and records (null: not
// known) of the object that is open.
void write_gap_json(const Gap& gap, const Definitions& definitions, JsonWriter& json);

// "thread 100/101", "cpu 3" or "session".
std::string gap_subject_text(const Gap& gap, const Definitions& definitions);

}  // namespace arctrace::reader
