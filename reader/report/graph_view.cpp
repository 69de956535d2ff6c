#include "reader/report/graph_view.hpp"

#include <absl/strings/str_cat.h>

#include "reader/analysis/function_graph.hpp"
#include "reader/render/columns.hpp"
#include "reader/render/frame_marks.hpp"
#include "reader/render/session_text.hpp"
#include "reader/render/thread_labels.hpp"
#include "reader/report/function_rows.hpp"
#include "reader/report/group_view.hpp"
#include "reader/report/tree_json.hpp"
#include "reader/report/tree_rows.hpp"

namespace arctrace::reader {
namespace {

constexpr std::string_view kLevelHead = " Lv";

class GraphView : public GroupView {
 public:
  explicit GraphView(const ViewSettings& settings)
      : GroupView(settings), functions_(settings.functions) {}

 private:
  // Calls `show` with the graph of each function, until it returns false.
  template <class Show>
  void for_graphs(const TreeGroup& group, const Replay& replay, const Show& show) const {
    const CallTree& tree = *group.tree;
    uint64_t shown = 0;
    for (const FunctionTotal& total :
         function_totals(tree, replay.functions(), group.root, options_.sort)) {
      if (!matches_any(functions_, replay.functions()[total.function].name)) continue;
      if (!is_large_enough(total.total_ns, tree[group.root].total_ns, options_)) continue;
      if (shown++ >= options_.limit) return;
      if (!show(*function_graph(tree, replay.functions(), group.root, total,
                                options_.sort))) {
        return;
      }
    }
  }

  // What is below a function, as a group of its own.
  static TreeGroup group_below(const FunctionGraph& graph, const FunctionLabels& labels) {
    TreeGroup below;
    below.name = labels[graph.own.function].name;
    below.tree = &graph.below;
    below.root = graph.below_root;
    return below;
  }

  void write_groups_text(const TreeGroups& groups, Replay& replay,
                         const WriteText& write) override {
    FunctionLabels labels(replay, options_.lines);
    const Columns columns(options_, replay.has_dispatches(), kLevelHead.size());
    bool more = true;
    for (const TreeGroup& group : groups.groups()) {
      bool is_first = groups.grouping() != Grouping::kAll;
      for_graphs(group, replay, [&](const FunctionGraph& graph) {
        if (is_first) {
          more = write(group_head(group, groups.grouping(), options_.style));
          is_first = false;
        }
        if (more) more = write(paths_text(graph, group, columns, labels));
        if (more) more = write(below_text(graph, group, columns, replay, labels));
        return more;
      });
      if (!more) return;
    }
    write(labels.recorded_legend() + columns.dropped_text());
  }

  std::string paths_text(const FunctionGraph& graph, const TreeGroup& group,
                         const Columns& columns, FunctionLabels& labels) const {
    const CallTree& tree = *group.tree;
    std::string text = "\n";
    append_tinted(text, options_.style, Tint::kHead, labels.text(graph.own.function));
    absl::StrAppend(&text, total_notes(graph.own, labels), ": ",
                    count_text(graph.own.calls, "call"), "\n");
    append_tinted(
        text, options_.style, Tint::kHead,
        absl::StrCat(std::string(kLevelHead.size(), ' '), columns.head(), "  Path"));
    text += '\n';
    const size_t shown =
        static_cast<size_t>(std::min<uint64_t>(options_.limit, graph.paths.size()));
    for (size_t i = 0; i < shown; ++i) {
      const NodeIndex index = graph.paths[i];
      std::string row(kLevelHead.size(), ' ');
      append_node(row, tree, index, group, columns);
      row += "  ";
      append_name(row, path_text(tree, index, labels), marks_text(tree.marks(index)),
                  false, options_.style);
      text += row;
    }
    return text + hidden_rows_text(graph.paths.size() - shown);
  }

  std::string below_text(const FunctionGraph& graph, const TreeGroup& group,
                         const Columns& columns, const Replay& replay,
                         FunctionLabels& labels) const {
    std::string text;
    append_tinted(
        text, options_.style, Tint::kHead,
        absl::StrCat(std::string(kLevelHead), columns.head(), "  Called in it"));
    text += '\n';
    const uint64_t hidden = walk_rows(
        group_below(graph, labels), replay.functions(), options_,
        [&](const TreePosition& at) {
          const CallNode& node = graph.below[at.node];
          std::string row;
          append_right(row, absl::StrCat(at.level), kLevelHead.size());
          append_node(row, graph.below, at.node, group, columns);
          row += "  ";
          row.append(indent_columns(at.level, columns_of(row), options_.style), ' ');
          append_name(row, labels.text(node.function),
                      marks_text(graph.below.marks(at.node)) +
                          labels.recorded_note(node.function),
                      is_hot(node.self_ns, (*group.tree)[group.root].total_ns),
                      options_.style);
          text += row;
          return true;
        });
    return text + hidden_rows_text(hidden);
  }

  // The columns of a node; shares are of the whole group.
  static void append_node(std::string& row, const CallTree& tree, NodeIndex index,
                          const TreeGroup& group, const Columns& columns) {
    const CallNode& node = tree[index];
    columns.append(row, {node.calls, node.self_ns, node.total_ns,
                         (*group.tree)[group.root].total_ns, tree.cpu_total(index)});
  }

  void write_groups_json(const TreeGroups& groups, Replay& replay,
                         JsonWriter& json) override {
    FunctionLabels labels(replay, options_.lines);
    for_groups_json(groups, json, [&](const TreeGroup& group) {
      json.key("graphs").begin_array();
      for_graphs(group, replay, [&](const FunctionGraph& graph) {
        json.begin_object();
        write_total_json(graph.own, labels, replay, json);
        write_paths_json(graph, *group.tree, replay, labels, json);
        write_tree_json("below", group_below(graph, labels), options_, replay, labels,
                        json);
        json.end();
        return json.good();
      });
      json.end();
    });
  }

  void write_paths_json(const FunctionGraph& graph, const CallTree& tree,
                        const Replay& replay, FunctionLabels& labels,
                        JsonWriter& json) const {
    json.key("paths").begin_array();
    uint64_t rows = 0;
    for (const NodeIndex index : graph.paths) {
      if (rows++ >= options_.limit) break;
      const CallNode& node = tree[index];
      json.begin_object();
      json.key("path");
      write_path_json(tree, index, labels, json);
      write_sums_json(node.calls, node.self_ns, node.total_ns, json);
      write_cpu_json(tree.cpu_total(index), replay.known_times(), json);
      json.end();
    }
    json.end();
  }

  const std::vector<std::string> functions_;
};

}  // namespace

std::unique_ptr<View> make_graph_view(const ViewSettings& settings) {
  return std::make_unique<GraphView>(settings);
}

}  // namespace arctrace::reader
