// The views "flow" and "invocations": single calls and records.
#include <absl/strings/str_cat.h>
#include <arctrace/format.h>

#include <optional>
#include <string>

#include "reader/render/labels.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/report/views.hpp"
#include "reader/streams/call_table.hpp"
#include "reader/streams/event_stream.hpp"
#include "reader/trace/format_names.hpp"

namespace arctrace::reader {
namespace {

class FlowView : public View, private EventSink {
 public:
  explicit FlowView(const ViewSettings& settings)
      : options_(settings.options),
        describe_(settings.describe),
        stream_(*this, settings.min_duration_ns) {}

  ReplayListener* call_listener() override { return &stream_; }

  void begin_text(Replay& replay, const WriteText& write) override {
    begin(replay);
    write_ = &write;
    std::string head = "\n";
    append_tinted(head, options_.style, Tint::kHead,
                  "           Time  Process/thread    Lv  Flow");
    good_ = write(head + "\n");
  }

  void begin_json(Replay& replay, JsonWriter& json) override {
    begin(replay);
    json_ = &json;
    json.key("flow").begin_array();
  }

  absl::Status write_text(Replay& /*replay*/, const WriteText& write) override;
  absl::Status write_json(Replay& /*replay*/, JsonWriter& json) override;

 private:
  void begin(Replay& replay) {
    replay_ = &replay;
    labels_.emplace(replay, options_.lines);
  }

  std::string describe(const Record& record) override {
    return json_ != nullptr ? content_members(describe_, record)
                            : content_text(describe_, record);
  }
  bool wants_content() const override { return events_ < options_.limit; }
  void add(const StreamEvent& event) override;

  static int64_t time_of(const StreamEvent& event);
  std::string columns(int64_t time_ns, ThreadIndex thread, uint32_t depth) const;
  std::string named_row(std::string row, const StreamEvent& event,
                        const std::string& notes);
  std::string event_text(const StreamEvent& event);
  void write_event_json(const StreamEvent& event, JsonWriter& json);

  const ViewOptions options_;
  const DescribeRecord describe_;
  EventStream stream_;
  const WriteText* write_ = nullptr;  // receives text
  JsonWriter* json_ = nullptr;        // receives JSON
  Replay* replay_ = nullptr;
  std::optional<FunctionLabels> labels_;
  uint64_t events_ = 0;
  bool good_ = true;
};

void FlowView::add(const StreamEvent& event) {
  if (!good_ || events_++ >= options_.limit) return;
  if (json_ != nullptr) {
    write_event_json(event, *json_);
    good_ = json_->good();
  } else {
    good_ = (*write_)(event_text(event));
  }
}

// Returns the time of a call's begin or end as all views and exports have it, which is
// not always that of the record that shows it.
int64_t FlowView::time_of(const StreamEvent& event) {
  switch (event.kind) {
    case StreamEvent::Kind::kEnter:
      return event.start_ns;
    case StreamEvent::Kind::kExit:
      return event.stop_ns;
    default:
      return event.time_ns;
  }
}

// ---- Text ----

std::string FlowView::columns(int64_t time_ns, ThreadIndex thread, uint32_t depth) const {
  std::string row;
  append_right(row, seconds_text(time_ns), 15);
  row += "  ";
  append_left(row, thread_ids_text(replay_->definitions(), thread), 16);
  append_right(row, absl::StrCat(depth), 4);
  return row += "  ";
}

std::string FlowView::named_row(std::string row, const StreamEvent& event,
                                const std::string& notes) {
  append_name(row, labels_->text(event.function) + event.content, notes, false,
              options_.style);
  return row;
}

std::string FlowView::event_text(const StreamEvent& event) {
  std::string row = columns(time_of(event), event.thread, event.depth);
  row.append(indent_columns(event.depth == 0 ? 0 : event.depth - 1, columns_of(row),
                            options_.style),
             ' ');
  switch (event.kind) {
    case StreamEvent::Kind::kEnter: {
      std::string notes = flags_text(event.flags);
      if (event.count > 1) absl::StrAppend(&notes, " [", event.count, " frames]");
      return named_row(row + "> ", event, notes);
    }
    case StreamEvent::Kind::kExit: {
      std::string notes = absl::StrCat("  ", call_time_text(event.duration_ns), ", self ",
                                       duration_text(event.self_ns));
      if (event.cpu.off_ns != 0) {
        absl::StrAppend(&notes, ", off CPU ", duration_text(event.cpu.off_ns));
      }
      notes += not_known_text(event.cpu.unknown_ns) + flags_text(event.flags);
      return named_row(row + "< ", event, notes);
    }
    case StreamEvent::Kind::kRecord:
      if (event.type == ARCTRACE_TYPE_LOST) {
        append_tinted(row, options_.style, Tint::kTrouble,
                      absl::StrCat("! LOST ", event.content));
      } else {
        absl::StrAppend(&row, "* ", record_type_text(event.type), " ", event.content);
      }
      break;
    case StreamEvent::Kind::kOrphanExit: {
      std::string what = "! orphan exit";
      if (event.function != kUnknownFunction) {
        absl::StrAppend(&what, " of ", labels_->text(event.function));
      }
      append_tinted(row, options_.style, Tint::kTrouble, what);
      break;
    }
    case StreamEvent::Kind::kResync:
      append_tinted(row, options_.style, Tint::kTrouble,
                    "! STACK record contradicts the stack so far");
      break;
  }
  return row += '\n';
}

absl::Status FlowView::write_text(Replay& /*replay*/, const WriteText& write) {
  stream_.finish();
  const uint64_t hidden = events_ > options_.limit ? events_ - options_.limit : 0;
  if (good_) good_ = write(hidden_rows_text(hidden));
  if (good_ && !stream_.open_frames().empty()) good_ = write("\nOpen at the end:\n");
  for (const FrameInfo& frame : stream_.open_frames()) {
    if (!good_) break;
    std::string row = columns(frame.start_ns, frame.thread, frame.depth);
    append_name(row, labels_->text(frame.function),
                flags_text(frame.flags & static_cast<uint16_t>(~unsigned{kFrameOpen})),
                false, options_.style);
    good_ = write(row);
  }
  return absl::OkStatus();
}

// ---- JSON ----

void FlowView::write_event_json(const StreamEvent& event, JsonWriter& json) {
  json.begin_object();
  json.member("time_ns", time_of(event));
  write_thread_ids_json(replay_->definitions(), event.thread, json);
  json.member("depth", event.depth);
  switch (event.kind) {
    case StreamEvent::Kind::kEnter:
      json.member("type", "ENTER");
      write_function_json(event.function, *labels_, json);
      json.members(event.content);
      if (event.count > 1) json.member("frames", event.count);
      write_flags_json(event.flags, json);
      break;
    case StreamEvent::Kind::kExit:
      json.member("type", "EXIT");
      write_function_json(event.function, *labels_, json);
      json.members(event.content);
      json.member("delta_ns", event.duration_ns);
      json.member("base_ns", event.self_ns);
      write_cpu_json(event.cpu, replay_->known_times(), json);
      write_flags_json(event.flags, json);
      break;
    case StreamEvent::Kind::kRecord:
      json.member("type", record_type_text(event.type));
      json.members(event.content);
      break;
    case StreamEvent::Kind::kOrphanExit:
    case StreamEvent::Kind::kResync:
      json.member("type", record_type_text(event.type));
      json.member("trouble", event.kind == StreamEvent::Kind::kOrphanExit
                                 ? "orphan"
                                 : "contradiction");
      if (event.function != kUnknownFunction) {
        write_function_json(event.function, *labels_, json);
      }
      break;
  }
  json.end();
}

absl::Status FlowView::write_json(Replay& /*replay*/, JsonWriter& json) {
  stream_.finish();
  json.end();
  json.key("open_frames").begin_array();
  for (const FrameInfo& frame : stream_.open_frames()) {
    json.begin_object();
    json.member("start_ns", frame.start_ns);
    write_thread_ids_json(replay_->definitions(), frame.thread, json);
    json.member("depth", frame.depth);
    write_function_json(frame.function, *labels_, json);
    write_flags_json(frame.flags, json);
    json.end();
  }
  json.end();
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<View> make_flow_view(const ViewSettings& settings) {
  return std::make_unique<FlowView>(settings);
}

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
            cpu_head(replay.known_times()), "  Process/thread   Name"));
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
    append_cpu(line, row.cpu, replay.known_times());
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
