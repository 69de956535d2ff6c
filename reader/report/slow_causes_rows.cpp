#include "reader/report/slow_causes_rows.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "reader/render/line_fitter.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/render/thread_labels.hpp"

namespace arctrace::reader {
namespace {

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

}  // namespace

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

}  // namespace arctrace::reader
