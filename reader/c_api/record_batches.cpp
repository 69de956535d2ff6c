#include "reader/c_api/record_batches.hpp"

#include <optional>
#include <utility>

#include "reader/c_api/replay_setup.hpp"
#include "reader/streams/effect_listener.hpp"
#include "reader/streams/record_describer.hpp"
#include "reader/trace/format_names.hpp"
#include "reader/trace/record_types.hpp"

namespace arctrace::reader {
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
    // What a record means may follow from those before it.
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

}  // namespace

absl::Status produce_records(arctrace_reader_trace& handle, RecordRange range,
                             uint32_t flags, RecordsAhead& ahead) {
  RecordBatches batches(handle, range, flags, ahead);
  absl::Status status =
      handle.trace.read([&](const Record& record) { return batches.add(record); });
  if (status.ok()) batches.put();
  return status;
}

}  // namespace arctrace::reader
