// The view "slowest": the slowest calls of some functions, and why they are slow.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "reader/analysis/slow_causes.hpp"
#include "reader/analysis/slowest_calls.hpp"
#include "reader/render/labels.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/render/text_style.hpp"
#include "reader/report/report_summary.hpp"
#include "reader/report/views.hpp"
#include "reader/streams/json_writer.hpp"

namespace arctrace::reader {
namespace {

// ---- Why calls are slow ----------------------------------------------------------

constexpr size_t kComparisonsMax = 3;
constexpr size_t kCausesMax = 8;
constexpr double kShareMin = 0.02;  // of the difference, for a row of its own

std::string signed_text(double more_ns) {
  return absl::StrCat(
      more_ns < 0 ? "- " : "+ ",
      duration_text(static_cast<uint64_t>(std::llround(std::abs(more_ns)))));
}

// "disk + 21.000 us, running + 1.200 us": the largest first.
std::string states_text(const SlowComparison& comparison) {
  std::array<std::pair<double, PathState>, kPathStates> sums{};
  for (size_t i = 0; i < kPathStates; ++i) sums[i].second = static_cast<PathState>(i);
  for (const SlowCause& cause : comparison.causes) {
    sums[static_cast<size_t>(cause.state)].first += comparison.more_ns(cause);
  }
  std::stable_sort(sums.begin(), sums.end(), [](const auto& a, const auto& b) {
    return std::abs(a.first) > std::abs(b.first);
  });
  std::string text;
  for (const auto& [more_ns, state] : sums) {
    if (std::llround(more_ns) == 0) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", std::string(path_state_name(state)),
                    " ", signed_text(more_ns));
  }
  return text;
}

std::string cause_path(const SlowComparison& comparison, const SlowCause& cause,
                       FunctionLabels& labels) {
  std::string text;
  const size_t cut = cause.path.size() - std::min(cause.path.size(), kPathFunctionsMax);
  if (cut != 0) text = "...";
  for (size_t i = cut; i < cause.path.size(); ++i) {
    absl::StrAppend(&text, text.empty() ? "" : " > ", labels.text(cause.path[i]));
  }
  return text.empty() ? absl::StrCat(labels.text(comparison.function), " itself") : text;
}

std::string comparison_text(const SlowComparison& comparison, bool has_states,
                            FunctionLabels& labels, const ViewOptions& options) {
  const double slow_ns = static_cast<double>(comparison.slow_ns) /
                         static_cast<double>(comparison.slow_calls);
  const double median_ns = static_cast<double>(comparison.median_ns) /
                           static_cast<double>(comparison.median_calls);
  std::string text;
  append_tinted(text, options.style, Tint::kHead,
                absl::StrCat("Why ", labels.text(comparison.function), " is slow"));
  absl::StrAppend(&text, ": the slowest ",
                  comparison.slow_calls == 1
                      ? std::string("call")
                      : absl::StrCat(grouped_text(comparison.slow_calls), " calls"),
                  " of ", grouped_text(comparison.calls), ", by wall-clock time, ",
                  comparison.slow_calls == 1 ? "takes " : "take ",
                  duration_text(static_cast<uint64_t>(slow_ns)), ", the median ",
                  call_time_text(static_cast<uint64_t>(median_ns)));
  text = "\n" + wrap_line(text, 2, options.style) + "\n";
  if (has_states) {
    if (const std::string states = states_text(comparison); !states.empty()) {
      absl::StrAppend(&text, wrap_line("  " + states, 4, options.style), "\n");
    }
  }
  std::string head;
  append_right(head, "More", 15);
  if (has_states) head += "  State    ";
  append_tinted(text, options.style, Tint::kHead, head + "  Path in it");
  text += '\n';
  const double all_ns = std::abs(slow_ns - median_ns);
  size_t rows = 0;
  double rest_ns = 0;
  for (const SlowCause& cause : comparison.causes) {
    const double more_ns = comparison.more_ns(cause);
    if (rows == kCausesMax || std::abs(more_ns) < all_ns * kShareMin ||
        std::llround(more_ns) == 0) {
      rest_ns += more_ns;
      continue;
    }
    ++rows;
    std::string row;
    append_right(row, signed_text(more_ns), 15);
    row += "  ";
    if (has_states) append_left(row, std::string(path_state_name(cause.state)), 11);
    append_name(row, cause_path(comparison, cause, labels), "", false, options.style);
    text += row;
  }
  if (std::llround(rest_ns) != 0) {
    std::string row;
    append_right(row, signed_text(rest_ns), 15);
    absl::StrAppend(&text, row, "  ", has_states ? "           " : "", "others\n");
  }
  return text;
}

// Returns for each of the first functions a head, the difference by states, and the paths
// that make most of it. Empty if there are no comparisons.
std::string slow_causes_text(const std::vector<SlowComparison>& comparisons,
                             const Replay& replay, FunctionLabels& labels,
                             const ViewOptions& options) {
  std::string text;
  for (size_t i = 0; i < std::min(comparisons.size(), kComparisonsMax); ++i) {
    text += comparison_text(comparisons[i], replay.has_dispatches(), labels, options);
  }
  if (comparisons.size() > kComparisonsMax) {
    absl::StrAppend(&text, "\nFor the other ", comparisons.size() - kComparisonsMax,
                    " functions: --format=json, or fewer with -F\n");
  }
  return text;
}

// Writes member "why" (views.hpp). `has_states`: the kernel recorded them.
void write_slow_causes_json(const std::vector<SlowComparison>& comparisons,
                            bool has_states, FunctionLabels& labels, JsonWriter& json) {
  json.key("why").begin_array();
  for (const SlowComparison& comparison : comparisons) {
    json.begin_object();
    write_function_json(comparison.function, labels, json);
    json.member("calls", comparison.calls);
    json.member("slow_calls", comparison.slow_calls);
    json.member("slow_ns", comparison.slow_ns);
    json.member("median_calls", comparison.median_calls);
    json.member("median_ns", comparison.median_ns);
    json.key("causes").begin_array();
    for (const SlowCause& cause : comparison.causes) {
      json.begin_object();
      json.key("path").begin_array();
      for (const FunctionId function : cause.path) json.value(labels[function].name);
      json.end();
      json.key("state");
      if (has_states) {
        json.value(path_state_name(cause.state));
      } else {
        json.value(nullptr);
      }
      json.member("slow_ns", cause.slow_ns);
      json.member("median_ns", cause.median_ns);
      json.member("more_ns", std::llround(comparison.more_ns(cause)));
      json.end();
    }
    json.end();
    json.end();
    if (!json.good()) break;
  }
  json.end();
}

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
                               is_wide() ? cpu_head(replay.known_times()) : "",
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
  // Whether there is space for all times beside a call and its arguments.
  bool is_wide() const {
    return options_.style.width == 0 || options_.style.width >= kWideCallColumns;
  }

  // Both listeners get the calls of the functions.
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

  bool wants(FunctionId function) {
    return functions_.match(function, replay_->functions());
  }

  std::string content(const Record& record) const {
    return is_json_ ? content_members(describe_, record)
                    : content_text(describe_, record);
  }

  // Returns the call, and in a second line its callers.
  std::string call_text(const SlowCall& call, const Replay& replay,
                        FunctionLabels& labels) const {
    const FrameInfo& frame = call.frame;
    std::string text;
    append_right(text, call_time_text(frame.duration_ns), 13);
    if (is_wide()) {
      append_right(text, duration_text(frame.self_ns), 13);
      append_cpu(text, frame.cpu, replay.known_times());
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
  FunctionPatterns functions_;
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
