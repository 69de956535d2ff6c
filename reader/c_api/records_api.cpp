// The cursor of records.
#include <memory>

#include "reader/c_api/guarded.hpp"
#include "reader/c_api/record_batches.hpp"

using arctrace::reader::failed;
using arctrace::reader::guarded;
using arctrace::reader::RecordRange;
using arctrace::reader::RecordsAhead;

struct arctrace_reader_records {
  arctrace_reader_records(arctrace_reader_trace& of, RecordRange range, uint32_t flags)
      : trace(of),
        is_whole(range.until_ns == INT64_MAX),
        ahead([&of, range, flags](RecordsAhead& to) {
          return arctrace::reader::produce_records(of, range, flags, to);
        }) {
    trace.is_busy = true;
  }
  arctrace_reader_records(const arctrace_reader_records&) = delete;
  arctrace_reader_records& operator=(const arctrace_reader_records&) = delete;
  ~arctrace_reader_records() {
    ahead.stop();
    trace.is_busy = false;
  }

  arctrace_reader_trace& trace;
  const bool is_whole;  // it reads to the trace's end
  arctrace::reader::RecordBatch batch;
  size_t next = 0;  // in batch.records
  bool has_ended = false;
  RecordsAhead ahead;
};

int arctrace_reader_records_open(arctrace_reader_trace* trace, int64_t from_ns,
                                 int64_t until_ns, uint32_t flags,
                                 arctrace_reader_records** records) {
  return guarded([&] {
    constexpr uint32_t kKnown = ARCTRACE_READER_TEXT | ARCTRACE_READER_FIELDS;
    if ((flags & ~kKnown) != 0) {
      return failed(ARCTRACE_READER_ARGUMENT, "records: an unknown flag");
    }
    if (trace->is_busy) {
      return failed(ARCTRACE_READER_BUSY, "records: the trace has a cursor");
    }
    *records = new arctrace_reader_records(*trace, {from_ns, until_ns}, flags);
    return int{ARCTRACE_READER_OK};
  });
}

int arctrace_reader_records_next(arctrace_reader_records* records,
                                 const arctrace_reader_record** record) {
  return guarded([&] {
    *record = nullptr;
    while (!records->has_ended && records->next == records->batch.records.size()) {
      records->next = 0;
      records->has_ended = !records->ahead.take(records->batch);
      if (records->has_ended && records->is_whole && records->ahead.status().ok()) {
        records->trace.facts.sum_up(records->trace.trace);
      }
    }
    if (records->has_ended) {
      return records->ahead.status().ok() ? int{ARCTRACE_READER_OK}
                                          : failed(records->ahead.status());
    }
    *record = &records->batch.records[records->next++];
    return int{ARCTRACE_READER_OK};
  });
}

void arctrace_reader_records_close(arctrace_reader_records* records) { delete records; }
