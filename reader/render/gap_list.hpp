// What a session recorded and when that changed, and the gaps of a trace: lists that
// reports end with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reader/streams/json_writer.hpp"
#include "reader/trace/definitions.hpp"
#include "reader/trace/gaps.hpp"
#include "reader/trace/record.hpp"

namespace arctrace::reader {

// What a session recorded, and when that changed, as its ENABLED records say: for
// `arctrace info`, and for hints that depend on what was asked to be left out.
class EnabledList {
 public:
  // To be called with each record of the trace, in their order.
  void note(const Record& record);

  // Whether functions were left out at some time, because they were switched off or a
  // filter that was changed while programs ran excluded functions or threads.
  bool excludes_functions() const { return excludes_functions_; }

  // A line for each change, ended by a newline. Empty if all classes were recorded from
  // the start to the end, without a filter.
  std::string text() const;

  // Member "enabled": for each change from_ns, gate, live_filter and record_filter.
  void write_json(JsonWriter& json) const;

 private:
  struct Entry {
    int64_t from_ns;
    uint32_t gate;
    std::vector<std::string> functions, records;  // entries of the two filters
  };
  static std::string text_of(const Entry& entry);

  std::vector<Entry> kept_;
  size_t count_ = 0;
  bool excludes_functions_ = false;
};

// Keeps the first gaps and counts all of them.
class GapList {
 public:
  // `definitions` must outlive this object.
  explicit GapList(const Definitions& definitions) : definitions_(definitions) {}

  void add(const Gap& gap);

  // The longest gap of lost records, if its beginning is known.
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
