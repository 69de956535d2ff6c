#include "reader/report/tree_json.hpp"

#include <vector>

#include "reader/render/frame_marks.hpp"
#include "reader/render/recorded_notes.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/report/tree_rows.hpp"

namespace arctrace::reader {
namespace {

// Nodes are nested down to this level, because parsers of JSON recurse.
constexpr uint32_t kNestedMax = 200;

struct DeepRow {
  NodeIndex node, parent;
  uint32_t level;
};

void write_node_json(const CallTree& tree, NodeIndex index, uint32_t level,
                     const Replay& replay, FunctionLabels& labels, JsonWriter& json) {
  const CallNode& node = tree[index];
  if (level != 0) {
    write_function_json(node.function, labels, json);
    write_recorded_json(labels.recorded().of(node.function), json);
  }
  write_sums_json(node.calls, node.self_ns, node.total_ns, json);
  write_cpu_json(tree.cpu_total(index), replay.known_times(), json);
  write_overhead_json(node.overhead_ps, replay, json);
  write_marks_json(tree.marks(index), json);
}

void write_deeper_json(const CallTree& tree, const std::vector<DeepRow>& rows,
                       const Replay& replay, FunctionLabels& labels, JsonWriter& json) {
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

}  // namespace

void write_tree_json(const char* key, const TreeGroup& group, const ViewOptions& options,
                     const Replay& replay, FunctionLabels& labels, JsonWriter& json) {
  const CallTree& tree = *group.tree;
  json.key(key);
  bool is_empty = true;
  uint32_t open = 0;  // nodes whose children are being written
  std::vector<DeepRow> deeper;
  const auto close_down_to = [&](uint32_t level) {
    for (; open > level; --open) {
      json.end();
      json.end();
    }
  };
  walk_rows(group, replay.functions(), options, [&](const TreePosition& at) {
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
}

void write_trees_json(const TreeGroups& groups, const ViewOptions& options,
                      const Replay& replay, FunctionLabels& labels, JsonWriter& json) {
  json.key(grouping_key(groups.grouping())).begin_array();
  for (const TreeGroup& group : groups.groups()) {
    begin_group_json(group, groups.grouping(), json);
    write_tree_json("root", group, options, replay, labels, json);
    json.end();
  }
  json.end();
}

}  // namespace arctrace::reader
