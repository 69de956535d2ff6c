#include "reader/report/flow_view.hpp"

#include <absl/strings/str_cat.h>
#include <arctrace/format.h>

#include <optional>
#include <string>

#include "reader/render/frame_marks.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/render/thread_labels.hpp"
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
  const WriteText* write_ = nullptr;  // text goes here, or JSON
  JsonWriter* json_ = nullptr;        // goes there
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

// Calls begin and end when all views and exports say, which is not always when the record
// came that shows it.
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

}  // namespace arctrace::reader
