#include "reader/report/flat_view.hpp"

#include <absl/strings/str_cat.h>

#include "reader/report/function_rows.hpp"
#include "reader/report/group_view.hpp"

namespace arctrace::reader {
namespace {

class FlatView : public GroupView {
 public:
  using GroupView::GroupView;

 private:
  struct Rows {
    std::vector<FunctionTotal> shown;
    uint64_t hidden = 0;
  };

  Rows rows_of(const TreeGroup& group, const Functions& functions) const {
    Rows rows{function_totals(*group.tree, functions, group.root, options_.sort)};
    rows.hidden = hide_rows(rows.shown, (*group.tree)[group.root].cum_ns, options_,
                            [](const FunctionTotal& row) { return row.cum_ns; });
    return rows;
  }

  void write_groups_text(const TreeGroups& groups, Replay& replay,
                         const WriteText& write) override {
    FunctionLabels labels(replay, options_.lines);
    for (const TreeGroup& group : groups.groups()) {
      const uint64_t all_ns = (*group.tree)[group.root].cum_ns;
      const Rows rows = rows_of(group, replay.functions());
      std::string text = group_head(group, groups.grouping(), options_.style);
      append_tinted(text, options_.style, Tint::kHead,
                    absl::StrCat(kSumsHead, replay.has_dispatches() ? kCpuHead : "",
                                 "    Ind  Name"));
      text += '\n';
      if (!write(text)) return;
      uint64_t index = 0;
      for (const FunctionTotal& total : rows.shown) {
        std::string row;
        append_sums(row, total.calls, total.base_ns, total.cum_ns, all_ns);
        if (replay.has_dispatches()) append_cpu(row, total.cpu);
        append_right(row, absl::StrCat(++index), 7);
        row += "  ";
        append_name(row, labels.text(total.function), total_notes(total, labels),
                    is_hot(total.base_ns, all_ns), options_.style);
        if (!write(row)) return;
      }
      if (!write(hidden_rows_text(rows.hidden))) return;
    }
  }

  void write_groups_json(const TreeGroups& groups, Replay& replay,
                         JsonWriter& json) override {
    FunctionLabels labels(replay, options_.lines);
    for_groups_json(groups, json, [&](const TreeGroup& group) {
      json.key("functions").begin_array();
      const Rows rows = rows_of(group, replay.functions());
      for (const FunctionTotal& total : rows.shown) {
        json.begin_object();
        write_total_json(total, labels, replay.known_times(), json);
        json.end();
      }
      json.end();
    });
  }
};

}  // namespace

std::unique_ptr<View> make_flat_view(const ViewSettings& settings) {
  return std::make_unique<FlatView>(settings);
}

}  // namespace arctrace::reader
