// What a session recorded, and when that changed, as its ENABLED records say: for
// `arctrace info`, and for hints that depend on what was asked to be left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "reader/streams/json_writer.hpp"
#include "reader/trace/record.hpp"

namespace arctrace::reader {

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

}  // namespace arctrace::reader
