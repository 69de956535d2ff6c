// Writes a table for each group of threads, and the parts of such tables.
#include "reader/report/group_view.hpp"

#include <absl/strings/str_cat.h>

#include <vector>

#include "reader/render/labels.hpp"
#include "reader/render/left_out.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/render/session_text.hpp"

namespace arctrace::reader {

TreeGroups GroupView::groups_of(const Replay& replay) const {
  return {replay, grouping_, TreeGroups::Of::kThreadsAndInterrupts};
}

namespace {

std::string left_out_groups_text(size_t count, Grouping grouping) {
  const bool is_process = grouping == Grouping::kProcess;
  return absl::StrCat(
      "\n",
      count_text(count, is_process ? "process" : "thread", is_process ? "processes" : ""),
      count == 1 ? " has" : " have", " no call that passes the filters\n");
}

}  // namespace

absl::Status GroupView::write_text(Replay& replay, const WriteText& write) {
  TreeGroups groups = groups_of(replay);
  const bool has_filter = !replay.has_all_calls() && shows_calls_only();
  const size_t left_out =
      has_filter ? groups.remove_without_calls(replay.functions()) : 0;
  write_groups_text(groups, replay, write);
  if (left_out != 0) write(left_out_groups_text(left_out, grouping_));
  return absl::OkStatus();
}

absl::Status GroupView::write_json(Replay& replay, JsonWriter& json) {
  write_groups_json(groups_of(replay), replay, json);
  return absl::OkStatus();
}

std::string group_head(const TreeGroup& group, Grouping grouping,
                       const TextStyle& style) {
  const CallNode& root = (*group.tree)[group.root];
  std::string head = "\n";
  append_tinted(head, style, Tint::kHead, group_title(group, grouping));
  absl::StrAppend(&head, ": ", duration_text(root.total_ns));
  if (root.self_ns != 0) {
    absl::StrAppend(&head, ", of which ", duration_text(root.self_ns), " in no function");
  }
  return head + marks_text(group.tree->marks(group.root)) + "\n";
}

std::string module_note(FunctionId function, const FunctionLabels& labels) {
  const std::string module = labels.module_text(function);
  return module.empty() ? "" : " in " + module;
}

std::string calls_note(const FunctionTotal& total) {
  std::string notes;
  if (total.recursion > 1) {
    absl::StrAppend(&notes, " [recursion to level ", total.recursion, "]");
  }
  return notes += marks_text(total.marks);
}

std::string total_notes(const FunctionTotal& total, FunctionLabels& labels) {
  return module_note(total.function, labels) + calls_note(total) +
         labels.recorded_note(total.function);
}

void write_total_json(const FunctionTotal& total, FunctionLabels& labels,
                      const Replay& replay, JsonWriter& json) {
  write_function_json(total.function, labels, json);
  write_recorded_json(labels.recorded().of(total.function), json);
  write_sums_json(total.calls, total.self_ns, total.total_ns, json);
  write_cpu_json(total.cpu, replay.known_times(), json);
  write_overhead_json(total.overhead_ps, replay, json);
  if (total.recursion > 1) json.member("recursion", total.recursion);
  write_marks_json(total.marks, json);
}

void write_functions_json(const TreeGroup& group, const FunctionTimes& times,
                          const ViewOptions& options, const Replay& replay,
                          FunctionLabels& labels, JsonWriter& json) {
  std::vector<FunctionTotal> rows =
      function_totals(*group.tree, replay.functions(), group.root, options.sort);
  hide_rows(rows, (*group.tree)[group.root].total_ns, options,
            [](const FunctionTotal& row) { return row.total_ns; });
  json.key("functions").begin_array();
  for (const FunctionTotal& total : rows) {
    json.begin_object();
    write_total_json(total, labels, replay, json);
    write_times_json(times.find(group, total.function), json);
    json.end();
  }
  json.end();
}

uint64_t walk_rows(const TreeGroup& group, const Functions& functions,
                   const ViewOptions& options,
                   absl::FunctionRef<bool(const TreePosition&)> row) {
  const CallTree& tree = *group.tree;
  const uint64_t all_ns = tree[group.root].total_ns;
  uint64_t rows = 0, hidden = 0;
  walk_tree(tree, functions, group.root, options.sort, [&](const TreePosition& at) {
    if (rows == options.limit ||
        !is_large_enough(tree[at.node].total_ns, all_ns, options)) {
      ++hidden;
      return Step::kOver;
    }
    ++rows;
    return row(at) ? Step::kInto : Step::kStop;
  });
  return hidden;
}

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
