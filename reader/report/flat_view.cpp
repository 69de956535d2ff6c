#include "reader/report/flat_view.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "reader/analysis/function_times.hpp"
#include "reader/render/columns.hpp"
#include "reader/report/function_rows.hpp"
#include "reader/report/group_view.hpp"

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
    Columns columns(options_, replay.has_dispatches(), kIndexHead.size());
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
        const std::string overhead =
            overhead_note(total.self_ns, total.overhead_ps, replay);
        has_overhead |= !overhead.empty();
        append_name(row, labels.text(total.function),
                    total_notes(total, labels) + overhead, is_hot(total.self_ns, all_ns),
                    options_.style);
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

}  // namespace arctrace::reader
