// The views "flat", "kinds" and "histogram": functions and their sums, without what
// called them.
#include <absl/strings/str_cat.h>

#include <algorithm>

#include "reader/analysis/function_times.hpp"
#include "reader/analysis/kind_totals.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/render/session_text.hpp"
#include "reader/render/text_style.hpp"
#include "reader/report/group_view.hpp"
#include "reader/report/views.hpp"

namespace arctrace::reader {
namespace {

constexpr std::string_view kIndexHead = "    Ind";

class FlatView : public GroupView {
 public:
  explicit FlatView(const ViewSettings& settings)
      : GroupView(settings),
        has_times_(settings.is_json || need_times(options_.columns)),
        times_(*settings.definitions, settings.grouping) {}

  ReplayListener* call_listener() override { return has_times_ ? &times_ : nullptr; }

 private:
  struct Rows {
    std::vector<FunctionTotal> shown;
    uint64_t hidden = 0;
  };

  Rows rows_of(const TreeGroup& group, const Functions& functions) const {
    Rows rows{function_totals(*group.tree, functions, group.root, options_.sort)};
    rows.hidden = hide_rows(rows.shown, (*group.tree)[group.root].total_ns, options_,
                            [](const FunctionTotal& row) { return row.total_ns; });
    return rows;
  }

  void write_groups_text(const TreeGroups& groups, Replay& replay,
                         const WriteText& write) override {
    FunctionLabels labels(replay, options_.lines);
    Columns columns(options_, replay.known_times(), kIndexHead.size());
    bool has_overhead = false;
    for (const TreeGroup& group : groups.groups()) {
      const uint64_t all_ns = (*group.tree)[group.root].total_ns;
      const Rows rows = rows_of(group, replay.functions());
      uint64_t largest_ns = 0;
      for (const FunctionTotal& total : rows.shown) {
        largest_ns = std::max(
            largest_ns, options_.sort == SortKey::kSelf ? total.self_ns : total.total_ns);
      }
      columns.set_scale(options_.sort, largest_ns);
      std::string text = group_head(group, groups.grouping(), options_.style);
      append_tinted(text, options_.style, Tint::kHead,
                    absl::StrCat(columns.head(), std::string(kIndexHead), "  Name"));
      text += '\n';
      if (!write(text)) return;
      uint64_t index = 0;
      for (const FunctionTotal& total : rows.shown) {
        std::string row;
        columns.append(row, {total.calls, total.self_ns, total.total_ns, all_ns,
                             total.cpu, times_.find(group, total.function)});
        append_right(row, absl::StrCat(++index), kIndexHead.size());
        row += "  ";
        const std::string own = own_work_note(total.function, total.overhead_ps, replay);
        const std::string overhead =
            own.empty() ? overhead_note(total.self_ns, total.overhead_ps, replay) : "";
        has_overhead |= !overhead.empty();
        append_name(row, labels.text(total.function),
                    absl::StrCat(total_notes(total, labels), overhead, own),
                    is_hot(total.self_ns, all_ns), options_.style);
        if (!write(row)) return;
      }
      if (!write(hidden_rows_text(rows.hidden))) return;
    }
    write(overhead_legend(has_overhead, replay) + labels.recorded_legend() +
          columns.dropped_text());
  }

  void write_groups_json(const TreeGroups& groups, Replay& replay,
                         JsonWriter& json) override {
    FunctionLabels labels(replay, options_.lines);
    for_groups_json(groups, json, [&](const TreeGroup& group) {
      write_functions_json(group, times_, options_, replay, labels, json);
    });
  }

  const bool has_times_;
  FunctionTimes times_;
};

}  // namespace

std::unique_ptr<View> make_flat_view(const ViewSettings& settings) {
  return std::make_unique<FlatView>(settings);
}

namespace {

class KindsView : public GroupView {
 public:
  using GroupView::GroupView;

 private:
  struct Rows {
    std::vector<KindTotal> shown;
    uint64_t hidden = 0;
  };

  Rows rows_of(const TreeGroup& group, const Functions& functions) const {
    Rows rows{kind_totals(*group.tree, functions, group.root, options_.sort)};
    rows.hidden = hide_rows(rows.shown, (*group.tree)[group.root].total_ns, options_,
                            [](const KindTotal& row) { return row.total_ns; });
    return rows;
  }

  void write_groups_text(const TreeGroups& groups, Replay& replay,
                         const WriteText& write) override {
    FunctionLabels labels(replay, options_.lines);
    Columns columns(options_, replay.known_times(), 0);
    for (const TreeGroup& group : groups.groups()) {
      const uint64_t all_ns = (*group.tree)[group.root].total_ns;
      const Rows rows = rows_of(group, replay.functions());
      uint64_t largest_ns = 0;
      for (const KindTotal& kind : rows.shown) {
        largest_ns = std::max(
            largest_ns, options_.sort == SortKey::kSelf ? kind.self_ns : kind.total_ns);
      }
      columns.set_scale(options_.sort, largest_ns);
      std::string text = group_head(group, groups.grouping(), options_.style);
      append_tinted(text, options_.style, Tint::kHead,
                    absl::StrCat(columns.head(), "  Kind"));
      text += '\n';
      if (rows.shown.empty() && rows.hidden == 0) {
        text += "  (no calls of functions of these kinds)\n";
      }
      const auto append_row = [&](const auto& total, const std::string& name,
                                  const std::string& notes) {
        std::string row;
        columns.append(row,
                       {total.calls, total.self_ns, total.total_ns, all_ns, total.cpu});
        row += "  ";
        append_name(row, name, notes, false, options_.style);
        text += row;
      };
      for (const KindTotal& kind : rows.shown) {
        append_row(kind, std::string(kind_name(kind.kind)), "");
        for (const FunctionTotal& function : kind.functions) {
          append_row(function, "  " + labels.text(function.function),
                     total_notes(function, labels));
        }
      }
      if (!write(text) || !write(hidden_rows_text(rows.hidden))) return;
    }
    write(columns.dropped_text() + left_out_list_text(replay, options_.lines));
  }

  void write_groups_json(const TreeGroups& groups, Replay& replay,
                         JsonWriter& json) override {
    FunctionLabels labels(replay, options_.lines);
    const KnownTimes known = replay.known_times();
    for_groups_json(groups, json, [&](const TreeGroup& group) {
      json.key("kinds").begin_array();
      const Rows rows = rows_of(group, replay.functions());
      for (const KindTotal& kind : rows.shown) {
        json.begin_object();
        json.member("name", kind_name(kind.kind));
        write_sums_json(kind.calls, kind.self_ns, kind.total_ns, json);
        write_cpu_json(kind.cpu, known, json);
        json.key("functions").begin_array();
        for (const FunctionTotal& function : kind.functions) {
          json.begin_object();
          write_total_json(function, labels, replay, json);
          json.end();
        }
        json.end();
        json.end();
      }
      json.end();
    });
  }
};

}  // namespace

std::unique_ptr<View> make_kinds_view(const ViewSettings& settings) {
  return std::make_unique<KindsView>(settings);
}

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
      return !functions_.match(functions[total.function].name);
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

  // Returns a head, the quantiles, and the ranges.
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
        // A bar is never empty, so that a range with calls does not look as if it had
        // none.
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

  const NamePatterns functions_;
  FunctionTimes times_;
};

}  // namespace

std::unique_ptr<View> make_histogram_view(const ViewSettings& settings) {
  return std::make_unique<HistogramView>(settings);
}

}  // namespace arctrace::reader
