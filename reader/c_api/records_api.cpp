// The cursor of records, and the batches of them that a thread reads ahead.
#include <absl/status/status.h>
#include <arctrace/reader.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reader/c_api/trace_handle.hpp"
#include "reader/streams/record_describer.hpp"
#include "reader/trace/format_names.hpp"
#include "reader/trace/read_ahead.hpp"
#include "reader/trace/record_types.hpp"

namespace arctrace::reader {

// The records of a trace in batches.
struct RecordBatch {
  std::vector<arctrace_reader_record> records;
  // Records point to these. The addresses of texts stay; those of bytes are set when the
  // batch is put.
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

namespace {

constexpr size_t kRecordsInBatch = 1024;
constexpr size_t kBytesInBatch = 1 << 18;

class RecordBatches {
 public:
  RecordBatches(arctrace_reader_trace& handle, RecordRange range, uint32_t flags,
                RecordsAhead& ahead)
      : trace_(handle.trace),
        range_(range),
        flags_(flags),
        ahead_(ahead),
        symbolizer_(handle.symbols) {
    if (flags == 0) return;
    // The meaning of a record may follow from those before it.
    replay_.emplace(trace_.definitions(), &symbolizer_,
                    replay_options_for(trace_, {}, &effects_));
    describer_.emplace(trace_, replay_->resolver(), DescribeOptions{false, true});
  }

  bool add(const Record& record) {
    if (record.time_ns >= range_.until_ns) return false;
    if (replay_.has_value()) {
      effects_.clear();
      replay_->add(record);
    }
    if (record.time_ns < range_.from_ns) return true;
    arctrace_reader_record made{};
    made.size = sizeof made;
    made.thread = record.thread;
    made.type = record.type;
    made.offset = record.offset;
    made.time_ns = record.time_ns;
    made.ticks = record.ticks;
    made.chunk = record.chunk;
    made.body_size = record.body.size();
    batch_.bytes.insert(batch_.bytes.end(), record.body.begin(), record.body.end());
    const std::string_view name = type_name(record.type);
    made.type_name = name.empty() ? keep(record_type_text(record.type)) : name.data();
    made.text = (flags_ & ARCTRACE_READER_TEXT) == 0 ? "" : keep(text_of(record));
    made.json = (flags_ & ARCTRACE_READER_FIELDS) == 0 ? "" : keep(json_of(record));
    batch_.records.push_back(made);
    if (batch_.records.size() < kRecordsInBatch && batch_.bytes.size() < kBytesInBatch) {
      return true;
    }
    return put();
  }

  bool put() {
    size_t at = 0;
    for (arctrace_reader_record& record : batch_.records) {
      record.body = batch_.bytes.data() + at;
      at += record.body_size;
    }
    return ahead_.put(batch_);
  }

 private:
  const char* keep(std::string text) {
    return batch_.texts.emplace_back(std::move(text)).c_str();
  }

  std::string text_of(const Record& record) {
    std::string text;
    TextFields fields(text);
    describer_->describe(record, effects_.effect(), fields);
    return text;
  }

  std::string json_of(const Record& record) {
    return "{" + json_members([&](JsonWriter& json) {
             JsonFields fields(json);
             describer_->describe(record, effects_.effect(), fields);
           }) +
           "}";
  }

  const Trace& trace_;
  const RecordRange range_;
  const uint32_t flags_;
  RecordsAhead& ahead_;
  Symbolizer symbolizer_;
  EffectListener effects_;
  std::optional<Replay> replay_;
  std::optional<RecordDescriber> describer_;
  RecordBatch batch_;
};

// Reads the trace and puts its records. `flags`: enum arctrace_reader_records_flag.
absl::Status produce_records(arctrace_reader_trace& handle, RecordRange range,
                             uint32_t flags, RecordsAhead& ahead) {
  RecordBatches batches(handle, range, flags, ahead);
  absl::Status status =
      handle.trace.read([&](const Record& record) { return batches.add(record); });
  if (status.ok()) batches.put();
  return status;
}

}  // namespace

}  // namespace arctrace::reader

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
