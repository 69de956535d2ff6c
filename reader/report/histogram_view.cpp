#include "reader/report/histogram_view.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "reader/analysis/function_times.hpp"
#include "reader/render/line_fitter.hpp"
#include "reader/render/session_text.hpp"
#include "reader/report/function_rows.hpp"
#include "reader/report/group_view.hpp"

namespace arctrace::reader {
namespace {

constexpr size_t kBarColumns = 40;  // of the range with the most calls

class HistogramView : public GroupView {
 public:
  explicit HistogramView(const ViewSettings& settings)
      : GroupView(settings),
        functions_(settings.functions),
        times_(*settings.definitions, settings.grouping) {}

  ReplayListener* call_listener() override { return &times_; }

 private:
  struct Rows {
    std::vector<FunctionTotal> shown;
    uint64_t hidden = 0;
  };

  Rows rows_of(const TreeGroup& group, const Functions& functions) const {
    Rows rows{function_totals(*group.tree, functions, group.root, options_.sort)};
    std::erase_if(rows.shown, [&](const FunctionTotal& total) {
      return !matches_any(functions_, functions[total.function].name);
    });
    rows.hidden = hide_rows(rows.shown, (*group.tree)[group.root].total_ns, options_,
                            [](const FunctionTotal& row) { return row.total_ns; });
    return rows;
  }

  void write_groups_text(const TreeGroups& groups, Replay& replay,
                         const WriteText& write) override {
    FunctionLabels labels(replay, options_.lines);
    for (const TreeGroup& group : groups.groups()) {
      const Rows rows = rows_of(group, replay.functions());
      if (groups.grouping() != Grouping::kAll && !rows.shown.empty()) {
        if (!write(group_head(group, groups.grouping(), options_.style))) return;
      }
      for (const FunctionTotal& total : rows.shown) {
        if (!write(function_text(total, times_.find(group, total.function), labels))) {
          return;
        }
      }
      if (!write(hidden_rows_text(rows.hidden))) return;
    }
    write(labels.recorded_legend());
  }

  // A head, the quantiles, and the ranges.
  std::string function_text(const FunctionTotal& total, const DurationHistogram* times,
                            FunctionLabels& labels) const {
    std::string text = "\n";
    append_tinted(text, options_.style, Tint::kHead, labels.text(total.function));
    absl::StrAppend(&text, total_notes(total, labels), ": ",
                    count_text(total.calls, "call"));
    if (times == nullptr) return text + ", none of which has a known time\n";
    if (times->count() != total.calls) {
      absl::StrAppend(&text, ", of which ", grouped_text(times->count()),
                      " have a known time");
    }
    absl::StrAppend(&text, "\n",
                    wrap_line("  " + quantiles_text(*times), 2, options_.style), "\n");
    append_ranges(text, *times);
    return text;
  }

  static std::string quantiles_text(const DurationHistogram& times) {
    std::string text = absl::StrCat("avg ", call_time_text(times.average_ns()), ", min ",
                                    call_time_text(times.min_ns()));
    for (const auto& [name, per_mille] :
         {std::pair("p50", 500), std::pair("p90", 900), std::pair("p99", 990),
          std::pair("p99.9", 999)}) {
      const std::optional<uint64_t> found =
          times.quantile_ns(static_cast<uint64_t>(per_mille));
      if (found) absl::StrAppend(&text, ", ", name, " ", call_time_text(*found));
    }
    return absl::StrCat(text, ", max ", call_time_text(times.max_ns()));
  }

  void append_ranges(std::string& text, const DurationHistogram& times) const {
    uint64_t most = 0;
    times.for_powers([&](uint64_t /*from_ns*/, uint64_t /*until_ns*/, uint64_t calls) {
      most = std::max(most, calls);
    });
    std::string head;
    append_right(head, "From", 13);
    append_right(head, "Below", 13);
    append_right(head, "Calls", 12);
    append_tinted(text, options_.style, Tint::kHead, head);
    text += '\n';
    times.for_powers([&](uint64_t from_ns, uint64_t until_ns, uint64_t calls) {
      std::string row;
      append_right(row, from_ns == 0 ? "0" : duration_text(from_ns), 13);
      append_right(row, duration_text(until_ns), 13);
      append_right(row, calls == 0 ? "-" : grouped_text(calls), 12);
      if (calls != 0) {
        // Not empty, so that a range with calls does not look as if it had none.
        const std::string bar = bar_text(calls, most, kBarColumns, options_.style);
        absl::StrAppend(&row, "  ", bar.empty() ? options_.style.utf8 ? "▏" : "#" : bar);
      }
      text += row + '\n';
    });
  }

  void write_groups_json(const TreeGroups& groups, Replay& replay,
                         JsonWriter& json) override {
    FunctionLabels labels(replay, options_.lines);
    for_groups_json(groups, json, [&](const TreeGroup& group) {
      json.key("histograms").begin_array();
      const Rows rows = rows_of(group, replay.functions());
      for (const FunctionTotal& total : rows.shown) {
        const DurationHistogram* times = times_.find(group, total.function);
        json.begin_object();
        write_total_json(total, labels, replay, json);
        write_times_json(times, json);
        json.key("buckets").begin_array();
        if (times != nullptr) write_ranges_json(*times, json);
        json.end();
        json.end();
      }
      json.end();
    });
  }

  static void write_ranges_json(const DurationHistogram& times, JsonWriter& json) {
    times.for_powers([&](uint64_t from_ns, uint64_t until_ns, uint64_t calls) {
      json.begin_object();
      json.member("from_ns", from_ns);
      json.member("until_ns", until_ns);
      json.member("calls", calls);
      json.end();
    });
  }

  const std::vector<std::string> functions_;
  FunctionTimes times_;
};

}  // namespace

std::unique_ptr<View> make_histogram_view(const ViewSettings& settings) {
  return std::make_unique<HistogramView>(settings);
}

}  // namespace arctrace::reader
