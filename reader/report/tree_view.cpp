// The views "tree" and "log-rt": whole call trees.
#include <absl/strings/str_cat.h>

#include "reader/render/labels.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/report/group_view.hpp"
#include "reader/report/views.hpp"

namespace arctrace::reader {
namespace {

constexpr std::string_view kLevelsHead = " Lv  RL";

class TreeView : public GroupView {
 public:
  using GroupView::GroupView;

 private:
  void write_groups_text(const TreeGroups& groups, Replay& replay,
                         const WriteText& write) override {
    FunctionLabels labels(replay, options_.lines);
    const Columns columns(options_, replay.known_times(), kLevelsHead.size());
    std::string head;
    append_tinted(head, options_.style, Tint::kHead,
                  absl::StrCat(std::string(kLevelsHead), columns.head(), "  Name"));
    bool more = true, has_overhead = false;
    for (const TreeGroup& group : groups.groups()) {
      if (!more) return;
      more = write("\n" + head + "\n");
      const uint64_t hidden =
          walk_rows(group, replay.functions(), options_, [&](const TreePosition& at) {
            if (is_signal(replay.functions()[(*group.tree)[at.node].function]))
              return more;
            const std::string overhead = note_of(group, at, replay);
            has_overhead |= !overhead.empty();
            const std::string notes =
                signals_text(*group.tree, at.node, replay.functions()) + overhead +
                own_note_of(group, at, replay) +
                (at.level == 0 ? ""
                               : labels.recorded_note((*group.tree)[at.node].function));
            more = write(row_text(group, groups.grouping(), at, columns, labels, notes));
            return more;
          });
      if (more) more = write(hidden_rows_text(hidden));
    }
    if (more) {
      write(overhead_legend(has_overhead, replay) + labels.recorded_legend() +
            columns.dropped_text());
    }
  }

  static std::string note_of(const TreeGroup& group, const TreePosition& at,
                             const Replay& replay) {
    if (at.level == 0) return {};  // no function
    const CallNode& node = (*group.tree)[at.node];
    if (!own_note_of(group, at, replay).empty()) return {};
    return overhead_note(node.self_ns, node.overhead_ps, replay);
  }

  static std::string own_note_of(const TreeGroup& group, const TreePosition& at,
                                 const Replay& replay) {
    const CallNode& node = (*group.tree)[at.node];
    return own_work_note(node.function, node.overhead_ps, replay);
  }

  std::string row_text(const TreeGroup& group, Grouping grouping, const TreePosition& at,
                       const Columns& columns, FunctionLabels& labels,
                       const std::string& notes) const {
    const CallTree& tree = *group.tree;
    const uint64_t all_ns = tree[group.root].total_ns;
    const CallNode& node = tree[at.node];
    NodeMarks marks = tree.marks(at.node);
    if (at.level == 0 && group.end_within_ns != 0)
      marks.end_within_ns = 0;  // in the title
    std::string row;
    append_right(row, absl::StrCat(at.level), 3);
    append_right(row, absl::StrCat(at.level == 0 ? 0 : at.recursion), 4);
    columns.append(
        row, {node.calls, node.self_ns, node.total_ns, all_ns, tree.cpu_total(at.node)});
    row += "  ";
    row.append(indent_columns(at.level, columns_of(row), options_.style), ' ');
    append_name(row,
                at.level == 0 ? group_title(group, grouping) + end_text(group)
                              : labels.text(node.function),
                marks_text(marks) + notes, is_hot(node.self_ns, all_ns), options_.style);
    return row;
  }

  void write_groups_json(const TreeGroups& groups, Replay& replay,
                         JsonWriter& json) override {
    FunctionLabels labels(replay, options_.lines);
    write_trees_json(groups, options_, replay, labels, json);
  }
};

}  // namespace

std::unique_ptr<View> make_tree_view(const ViewSettings& settings) {
  return std::make_unique<TreeView>(settings);
}

namespace {

uint64_t calls_made(const CallTree& tree, NodeIndex node) {
  uint64_t calls = 0;
  for (NodeIndex c = tree[node].first_child; c != kNoNode; c = tree[c].next_sibling) {
    calls += tree[c].calls;
  }
  return calls;
}

class LogRtView : public GroupView {
 public:
  using GroupView::GroupView;

 private:
  bool shows_calls_only() const override { return false; }

  void write_groups_text(const TreeGroups& groups, Replay& replay,
                         const WriteText& write) override {
    FunctionLabels labels(replay, options_.lines);
    bool more = write("LV CALLS CEE BASE DS IN NAME\n");
    for (const TreeGroup& group : groups.groups()) {
      if (!more) return;
      const CallTree& tree = *group.tree;
      walk_rows(group, replay.functions(), options_, [&](const TreePosition& at) {
        const CallNode& node = tree[at.node];
        more =
            write(absl::StrCat(at.level, " ", node.calls, " ", calls_made(tree, at.node),
                               " ", node.self_ns, " ", tree.cpu_self(at.node).switches,
                               " ", tree.cpu_self(at.node).interrupts, " ",
                               at.level == 0 ? group_title(group, groups.grouping())
                                             : labels.text(node.function),
                               "\n"));
        return more;
      });
    }
  }

  void write_groups_json(const TreeGroups& groups, Replay& replay,
                         JsonWriter& json) override {
    FunctionLabels labels(replay, options_.lines);
    json.key("log_rt").begin_array();
    for (const TreeGroup& group : groups.groups()) {
      const CallTree& tree = *group.tree;
      walk_rows(group, replay.functions(), options_, [&](const TreePosition& at) {
        const CallNode& node = tree[at.node];
        json.begin_object();
        json.member("lv", at.level);
        json.member("calls", node.calls);
        json.member("cee", calls_made(tree, at.node));
        json.member("base_ns", node.self_ns);
        json.member("ds", tree.cpu_self(at.node).switches);
        json.member("in", tree.cpu_self(at.node).interrupts);
        if (at.level == 0) {
          json.member("name", group_title(group, groups.grouping()));
        } else {
          write_function_json(node.function, labels, json);
        }
        json.end();
        return json.good();
      });
    }
    json.end();
  }
};

}  // namespace

std::unique_ptr<View> make_log_rt_view(const ViewSettings& settings) {
  return std::make_unique<LogRtView>(settings);
}

}  // namespace arctrace::reader
