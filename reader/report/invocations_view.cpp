#include "reader/report/invocations_view.hpp"

#include <absl/strings/str_cat.h>

#include "reader/render/frame_marks.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/render/thread_labels.hpp"
#include "reader/streams/call_table.hpp"

namespace arctrace::reader {
namespace {

class InvocationsView : public View {
 public:
  InvocationsView(const ViewSettings& settings, size_t rows_in_memory)
      : options_(settings.options),
        describe_(settings.describe),
        calls_([this](const Record& record) { return content(record); }, rows_in_memory) {
  }

  ReplayListener* call_listener() override { return &calls_; }
  void begin_json(Replay& /*replay*/, JsonWriter& /*json*/) override { is_json_ = true; }

  absl::Status write_text(Replay& replay, const WriteText& write) override {
    FunctionLabels labels(replay, options_.lines);
    std::string head = "\n";
    append_tinted(
        head, options_.style, Tint::kHead,
        absl::StrCat(
            "     Number            Start             Stop     Duration         Self",
            replay.has_dispatches() ? kCpuHead : "", "  Process/thread   Name"));
    head += '\n';
    if (!write(head)) return absl::OkStatus();
    const absl::StatusOr<uint64_t> hidden =
        for_rows(replay, [&](uint64_t number, const InvocationRow& row) {
          return write(row_text(number, row, replay, labels));
        });
    if (!hidden.ok()) return hidden.status();
    write(hidden_rows_text(*hidden));
    return absl::OkStatus();
  }

  absl::Status write_json(Replay& replay, JsonWriter& json) override {
    FunctionLabels labels(replay, options_.lines);
    json.key("invocations").begin_array();
    const absl::StatusOr<uint64_t> hidden =
        for_rows(replay, [&](uint64_t number, const InvocationRow& row) {
          write_row_json(number, row, replay, labels, json);
          return json.good();
        });
    json.end();
    return hidden.status();
  }

 private:
  std::string content(const Record& record) const {
    return is_json_ ? content_members(describe_, record)
                    : content_text(describe_, record);
  }

  absl::StatusOr<uint64_t> for_rows(const Replay& replay, CallTable::Visit visit) {
    return calls_.for_each(options_.sort, options_.limit, replay.functions(), visit);
  }

  std::string row_text(uint64_t number, const InvocationRow& row, const Replay& replay,
                       FunctionLabels& labels) {
    std::string line;
    append_right(line, absl::StrCat(number), 11);
    append_right(line, seconds_text(row.start_ns), 17);
    append_right(line, seconds_text(row.stop_ns), 17);
    append_right(line, call_time_text(row.duration_ns), 13);
    append_right(line, duration_text(row.self_ns), 13);
    if (replay.has_dispatches()) append_cpu(line, row.cpu);
    line += "  ";
    append_left(line, thread_ids_text(replay.definitions(), row.thread), 16);
    line += ' ';
    append_name(
        line,
        absl::StrCat(labels.text(row.function), calls_.args(row), calls_.retval(row)),
        not_known_text(row.cpu.unknown_ns) + flags_text(row.flags), false,
        options_.style);
    return line;
  }

  void write_row_json(uint64_t number, const InvocationRow& row, const Replay& replay,
                      FunctionLabels& labels, JsonWriter& json) {
    json.begin_object();
    json.member("seq", number);
    json.member("start_ns", row.start_ns);
    json.member("stop_ns", row.stop_ns);
    json.member("delta_ns", row.duration_ns);
    json.member("base_ns", row.self_ns);
    write_cpu_json(row.cpu, replay.known_times(), json);
    write_thread_ids_json(replay.definitions(), row.thread, json);
    write_function_json(row.function, labels, json);
    json.members(calls_.args(row));
    json.members(calls_.retval(row));
    write_flags_json(row.flags, json);
    json.end();
  }

  const ViewOptions options_;
  const DescribeRecord describe_;
  bool is_json_ = false;
  CallTable calls_;
};

}  // namespace

std::unique_ptr<View> make_invocations_view(const ViewSettings& settings) {
  return make_invocations_view(settings, CallTable::kRowsInMemory);
}

std::unique_ptr<View> make_invocations_view(const ViewSettings& settings,
                                            size_t rows_in_memory) {
  return std::make_unique<InvocationsView>(settings, rows_in_memory);
}

}  // namespace arctrace::reader
