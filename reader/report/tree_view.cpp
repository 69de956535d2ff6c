#include "reader/report/tree_view.hpp"

#include <absl/strings/str_cat.h>

#include <vector>

#include "reader/render/frame_marks.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/report/group_view.hpp"
#include "reader/report/tree_rows.hpp"

namespace arctrace::reader {
namespace {

class TreeView : public GroupView {
 public:
  using GroupView::GroupView;

 private:
  void write_groups_text(const TreeGroups& groups, Replay& replay,
                         const WriteText& write) override {
    FunctionLabels labels(replay, options_.lines);
    std::string head;
    append_tinted(head, options_.style, Tint::kHead,
                  absl::StrCat(" Lv  RL", kSumsHead,
                               replay.has_dispatches() ? kCpuHead : "", "  Name"));
    bool more = true;
    for (const TreeGroup& group : groups.groups()) {
      if (!more) return;
      more = write("\n" + head + "\n");
      const uint64_t hidden =
          walk_rows(group, replay.functions(), options_, [&](const TreePosition& at) {
            more = write(row_text(group, groups.grouping(), at, replay, labels));
            return more;
          });
      if (more) more = write(hidden_rows_text(hidden));
    }
  }

  std::string row_text(const TreeGroup& group, Grouping grouping, const TreePosition& at,
                       const Replay& replay, FunctionLabels& labels) const {
    const CallTree& tree = *group.tree;
    const uint64_t all_ns = tree[group.root].cum_ns;
    const CallNode& node = tree[at.node];
    std::string row;
    append_right(row, absl::StrCat(at.level), 3);
    append_right(row, absl::StrCat(at.level == 0 ? 0 : at.recursion), 4);
    append_sums(row, node.calls, node.base_ns, node.cum_ns, all_ns);
    if (replay.has_dispatches()) append_cpu(row, tree.cpu_cum(at.node));
    row.append(2 + indent_columns(at.level), ' ');
    append_name(row,
                at.level == 0 ? group_title(group, grouping) + end_text(group)
                              : labels.text(node.function),
                marks_text(tree.marks(at.node)), is_hot(node.base_ns, all_ns),
                options_.style);
    return row;
  }

  // Nodes are nested down to this level, because parsers of JSON recurse. Below it they
  // stand in rows that name their parents.
  static constexpr uint32_t kNestedMax = 200;

  struct DeepRow {
    NodeIndex node, parent;
    uint32_t level;
  };

  static void write_node_json(const CallTree& tree, NodeIndex index, uint32_t level,
                              const Replay& replay, FunctionLabels& labels,
                              JsonWriter& json) {
    const CallNode& node = tree[index];
    if (level != 0) write_function_json(node.function, labels, json);
    write_sums_json(node.calls, node.base_ns, node.cum_ns, json);
    write_cpu_json(tree.cpu_cum(index), replay.known_times(), json);
    write_marks_json(tree.marks(index), json);
  }

  static void write_deeper_json(const CallTree& tree, const std::vector<DeepRow>& rows,
                                const Replay& replay, FunctionLabels& labels,
                                JsonWriter& json) {
    if (rows.empty()) return;
    json.key("deeper").begin_array();
    for (const DeepRow& row : rows) {
      if (!json.good()) break;
      json.begin_object();
      json.member("id", row.node);
      json.member("parent", row.parent);
      json.member("level", row.level);
      write_node_json(tree, row.node, row.level, replay, labels, json);
      json.end();
    }
    json.end();
  }

  void write_groups_json(const TreeGroups& groups, Replay& replay,
                         JsonWriter& json) override {
    FunctionLabels labels(replay, options_.lines);
    json.key(grouping_key(groups.grouping())).begin_array();
    for (const TreeGroup& group : groups.groups()) {
      const CallTree& tree = *group.tree;
      begin_group_json(group, groups.grouping(), json);
      json.key("root");
      bool is_empty = true;
      uint32_t open = 0;  // nodes whose children are being written
      std::vector<DeepRow> deeper;
      const auto close_down_to = [&](uint32_t level) {
        for (; open > level; --open) {
          json.end();
          json.end();
        }
      };
      walk_rows(group, replay.functions(), options_, [&](const TreePosition& at) {
        if (at.level > kNestedMax) {
          deeper.push_back({at.node, at.path[at.level - 1], at.level});
          return json.good();
        }
        close_down_to(at.level);
        ++open;
        is_empty = false;
        json.begin_object();
        if (at.level == kNestedMax) json.member("id", at.node);
        if (at.level == 0) json.member("name", group.name);
        write_node_json(tree, at.node, at.level, replay, labels, json);
        json.key("children").begin_array();
        return json.good();
      });
      close_down_to(0);
      if (is_empty) json.value(nullptr);
      write_deeper_json(tree, deeper, replay, labels, json);
      json.end();
    }
    json.end();
  }
};

}  // namespace

std::unique_ptr<View> make_tree_view(const ViewSettings& settings) {
  return std::make_unique<TreeView>(settings);
}

}  // namespace arctrace::reader
