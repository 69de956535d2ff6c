// The views "arcs" and "graph": functions with what called them and what they call.
#include <absl/strings/str_cat.h>

#include "reader/analysis/function_totals.hpp"
#include "reader/render/labels.hpp"
#include "reader/render/left_out.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/render/session_text.hpp"
#include "reader/report/group_view.hpp"
#include "reader/report/views.hpp"

namespace arctrace::reader {
namespace {

constexpr std::string_view kSourceHead = "Source  ";

// The caller of the outermost functions.
constexpr const char* kNoFunction = "[thread]";

void write_arc_list(const char* key, const std::vector<Arc>& arcs, FunctionLabels& labels,
                    KnownTimes known, JsonWriter& json) {
  json.key(key).begin_array();
  for (const Arc& arc : arcs) {
    json.begin_object();
    if (arc.function == kRootFunction) {
      json.member("name", kNoFunction);
    } else {
      write_function_json(arc.function, labels, json);
      write_recorded_json(labels.recorded().of(arc.function), json);
    }
    write_sums_json(arc.calls, arc.self_ns, arc.total_ns, json);
    write_cpu_json(arc.cpu, known, json);
    json.end();
  }
  json.end();
}

class ArcsView : public GroupView {
 public:
  using GroupView::GroupView;

 private:
  struct Rows {
    std::vector<FunctionArcs> shown;
    uint64_t hidden = 0;
  };

  Rows rows_of(const TreeGroup& group, const Functions& functions) const {
    Rows rows{function_arcs(*group.tree, functions, group.root, options_.sort)};
    rows.hidden = hide_rows(rows.shown, (*group.tree)[group.root].total_ns, options_,
                            [](const FunctionArcs& row) { return row.own.total_ns; });
    return rows;
  }

  void write_groups_text(const TreeGroups& groups, Replay& replay,
                         const WriteText& write) override {
    FunctionLabels labels(replay, options_.lines);
    const Columns columns(options_, replay.known_times(), kSourceHead.size());
    for (const TreeGroup& group : groups.groups()) {
      const uint64_t all_ns = (*group.tree)[group.root].total_ns;
      const Rows rows = rows_of(group, replay.functions());
      std::string text = group_head(group, groups.grouping(), options_.style);
      append_tinted(text, options_.style, Tint::kHead,
                    absl::StrCat(std::string(kSourceHead), columns.head(), "  Function"));
      text += '\n';
      if (!write(text)) return;
      for (const FunctionArcs& arcs : rows.shown) {
        if (!write(block_text(arcs, all_ns, columns, labels, replay.functions()))) return;
      }
      if (!write(hidden_rows_text(rows.hidden))) return;
    }
    write(labels.recorded_legend() + columns.dropped_text());
  }

  // Returns the lines of one function, and an empty one.
  std::string block_text(const FunctionArcs& arcs, uint64_t all_ns,
                         const Columns& columns, FunctionLabels& labels,
                         const Functions& functions) const {
    std::string block;
    const auto append_columns = [&](std::string& row, const char* source,
                                    const auto& sums) {
      append_left(row, source, kSourceHead.size());
      columns.append(row, {sums.calls, sums.self_ns, sums.total_ns, all_ns, sums.cpu});
    };
    const auto append_arcs = [&](const char* source, const std::vector<Arc>& list) {
      for (const Arc& arc : list) {
        if (is_signal(functions[arc.function])) continue;
        std::string row;
        append_columns(row, source, arc);
        row += "    ";
        const bool is_function = arc.function != kRootFunction;
        append_name(row, is_function ? labels.text(arc.function) : kNoFunction,
                    is_function ? labels.recorded_note(arc.function) : "", false,
                    options_.style);
        block += row;
      }
    };
    append_arcs("parent", arcs.parents);
    std::string row;
    append_columns(row, "self", arcs.own);
    row += "  ";
    append_name(row, labels.text(arcs.own.function), total_notes(arcs.own, labels),
                is_hot(arcs.own.self_ns, all_ns), options_.style);
    block += row;
    append_arcs("child", arcs.children);
    return block += '\n';
  }

  void write_groups_json(const TreeGroups& groups, Replay& replay,
                         JsonWriter& json) override {
    FunctionLabels labels(replay, options_.lines);
    const KnownTimes known = replay.known_times();
    for_groups_json(groups, json, [&](const TreeGroup& group) {
      json.key("arcs").begin_array();
      const Rows rows = rows_of(group, replay.functions());
      for (const FunctionArcs& arcs : rows.shown) {
        json.begin_object();
        write_total_json(arcs.own, labels, replay, json);
        write_arc_list("parents", arcs.parents, labels, known, json);
        write_arc_list("children", arcs.children, labels, known, json);
        json.end();
      }
      json.end();
    });
  }
};

}  // namespace

std::unique_ptr<View> make_arcs_view(const ViewSettings& settings) {
  return std::make_unique<ArcsView>(settings);
}

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
      if (!functions_.match(replay.functions()[total.function].name)) continue;
      if (!is_large_enough(total.total_ns, tree[group.root].total_ns, options_)) continue;
      if (shown++ >= options_.limit) return;
      if (!show(*function_graph(tree, replay.functions(), group.root, total,
                                options_.sort))) {
        return;
      }
    }
  }

  // Returns the tree below a function, as a group of its own.
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
    const Columns columns(options_, replay.known_times(), kLevelHead.size());
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

  // Appends the columns of a node; shares are of the whole group.
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

  const NamePatterns functions_;
};

}  // namespace

std::unique_ptr<View> make_graph_view(const ViewSettings& settings) {
  return std::make_unique<GraphView>(settings);
}

}  // namespace arctrace::reader
