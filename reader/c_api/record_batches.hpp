// The records of a trace in batches.
#pragma once

#include <absl/status/status.h>
#include <arctrace/reader.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "reader/c_api/trace_handle.hpp"
#include "reader/trace/read_ahead.hpp"

namespace arctrace::reader {

struct RecordBatch {
  std::vector<arctrace_reader_record> records;
  // To which records point; the addresses of texts stay, those of bytes when it is put.
  std::vector<std::byte> bytes;
  std::deque<std::string> texts;

  void clear() {
    records.clear();
    bytes.clear();
    texts.clear();
  }
};

using RecordsAhead = ReadAhead<RecordBatch>;

struct RecordRange {
  int64_t from_ns, until_ns;
};

// Reads the trace and puts its records. `flags`: enum arctrace_reader_records_flag.
absl::Status produce_records(arctrace_reader_trace& handle, RecordRange range,
                             uint32_t flags, RecordsAhead& ahead);

}  // namespace arctrace::reader
