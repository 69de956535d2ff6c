#include "reader/report/slowest_view.hpp"

#include <absl/strings/str_cat.h>

#include "reader/analysis/slow_causes.hpp"
#include "reader/analysis/slowest_calls.hpp"
#include "reader/render/frame_marks.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/render/thread_labels.hpp"
#include "reader/report/own_functions_hint.hpp"
#include "reader/report/slow_causes_rows.hpp"

namespace arctrace::reader {
namespace {

// Below this many columns only the duration of the times is shown.
constexpr size_t kWideCallColumns = 110;

class SlowestView : public View, private ReplayListener {
 public:
  explicit SlowestView(const ViewSettings& settings)
      : options_(settings.options),
        functions_(settings.functions),
        describe_(settings.describe),
        is_json_(settings.is_json),
        session_(settings.session),
        summary_(settings.summary),
        enabled_(settings.enabled),
        calls_([this](FunctionId function) { return wants(function); },
               [this](const Record& record) { return content(record); },
               settings.options.sort, settings.options.limit) {}

  ReplayListener* call_listener() override { return this; }
  ScheduleListener* schedule_listener() override { return &causes_; }
  void begin_text(Replay& replay, const WriteText& /*write*/) override { begin(replay); }
  void begin_json(Replay& replay, JsonWriter& /*json*/) override { begin(replay); }

  absl::Status write_text(Replay& replay, const WriteText& write) override {
    FunctionLabels labels(replay, options_.lines);
    std::string head = "\n";
    append_tinted(head, options_.style, Tint::kHead,
                  absl::StrCat("     Duration", is_wide() ? "         Self" : "",
                               is_wide() && replay.has_dispatches() ? kCpuHead : "",
                               "            Start  Process/thread   Call"));
    if (!write(head + "\n")) return absl::OkStatus();
    const std::vector<SlowCall> calls = calls_.take();
    for (const SlowCall& call : calls) {
      if (!write(call_text(call, replay, labels))) return absl::OkStatus();
    }
    if (!write(hidden_rows_text(calls_.count() - calls.size()))) return absl::OkStatus();
    if (!write(slow_causes_text(causes_.comparisons(), replay, labels, options_)))
      return absl::OkStatus();
    const std::string hint =
        own_functions_hint(replay, session_, summary_, enabled_, options_.style.width);
    if (!hint.empty()) write(absl::StrCat("\n", hint, "\n"));
    return absl::OkStatus();
  }

  absl::Status write_json(Replay& replay, JsonWriter& json) override {
    FunctionLabels labels(replay, options_.lines);
    json.member("calls", calls_.count());
    json.key("slowest").begin_array();
    for (const SlowCall& call : calls_.take()) {
      write_call_json(call, replay, labels, json);
      if (!json.good()) break;
    }
    json.end();
    write_slow_causes_json(causes_.comparisons(), replay.has_dispatches(), labels, json);
    return absl::OkStatus();
  }

 private:
  // Whether there is room for all times beside a call and its arguments.
  bool is_wide() const {
    return options_.style.width == 0 || options_.style.width >= kWideCallColumns;
  }

  // Those of the functions are told to both.
  uint64_t frame_opened(const FrameInfo& frame) override {
    const uint64_t token = calls_.frame_opened(frame);
    if (token != 0) causes_.call_began(frame);
    return token;
  }
  void frame_closed(const FrameInfo& frame, uint64_t token, bool shown) override {
    calls_.frame_closed(frame, token, shown);
    if (token != 0) causes_.call_ended(frame, shown);
  }
  void frame_adopted(const FrameInfo& frame) override { calls_.frame_adopted(frame); }
  void point(const PointInfo& /*point*/) override {}
  void args(const ArgsInfo& args) override { calls_.args(args); }

  void begin(Replay& replay) {
    replay_ = &replay;
    causes_.set_replay(replay);
  }

  bool wants(FunctionId function) const {
    return matches_any(functions_, replay_->functions()[function].name);
  }

  std::string content(const Record& record) const {
    return is_json_ ? content_members(describe_, record)
                    : content_text(describe_, record);
  }

  // The call, and in a second line what it was called in.
  std::string call_text(const SlowCall& call, const Replay& replay,
                        FunctionLabels& labels) const {
    const FrameInfo& frame = call.frame;
    std::string text;
    append_right(text, call_time_text(frame.duration_ns), 13);
    if (is_wide()) {
      append_right(text, duration_text(frame.self_ns), 13);
      if (replay.has_dispatches()) append_cpu(text, frame.cpu);
    }
    append_right(text, seconds_text(frame.start_ns), 17);
    text += "  ";
    append_left(text, thread_ids_text(replay.definitions(), frame.thread), 16);
    text += ' ';
    append_name(text, absl::StrCat(labels.text(frame.function), call.args, call.retval),
                not_known_text(frame.cpu.unknown_ns) + flags_text(frame.flags), false,
                options_.style);
    if (call.path.size() < 2) return text;
    std::string outer(28, ' ');
    outer += "in ";
    std::string path;
    for (size_t i = call.path.size() > kPathFunctionsMax
                        ? call.path.size() - kPathFunctionsMax
                        : 0;
         i + 1 < call.path.size(); ++i) {
      absl::StrAppend(&path, path.empty() ? "" : " > ", labels.text(call.path[i]));
    }
    append_name(outer, path, "", false, options_.style);
    return text + outer;
  }

  static void write_call_json(const SlowCall& call, const Replay& replay,
                              FunctionLabels& labels, JsonWriter& json) {
    const FrameInfo& frame = call.frame;
    json.begin_object();
    json.member("start_ns", frame.start_ns);
    json.member("stop_ns", frame.stop_ns);
    json.member("delta_ns", frame.duration_ns);
    json.member("base_ns", frame.self_ns);
    write_cpu_json(frame.cpu, replay.known_times(), json);
    write_thread_ids_json(replay.definitions(), frame.thread, json);
    write_function_json(frame.function, labels, json);
    json.members(call.args);
    json.members(call.retval);
    json.key("path").begin_array();
    for (const FunctionId function : call.path) json.value(labels[function].name);
    json.end();
    write_flags_json(frame.flags, json);
    json.end();
  }

  const ViewOptions options_;
  const std::vector<std::string> functions_;
  const DescribeRecord describe_;
  const bool is_json_;
  const Session* const session_;
  const Summary* const summary_;
  const EnabledList* const enabled_;
  const Replay* replay_ = nullptr;
  SlowestCalls calls_;
  SlowCauses causes_;
};

}  // namespace

std::unique_ptr<View> make_slowest_view(const ViewSettings& settings) {
  return std::make_unique<SlowestView>(settings);
}

}  // namespace arctrace::reader
