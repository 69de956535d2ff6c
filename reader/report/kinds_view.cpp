#include "reader/report/kinds_view.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "reader/analysis/kind_totals.hpp"
#include "reader/render/columns.hpp"
#include "reader/report/function_rows.hpp"
#include "reader/report/group_view.hpp"

namespace arctrace::reader {
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
    Columns columns(options_, replay.has_dispatches(), 0);
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

}  // namespace arctrace::reader
