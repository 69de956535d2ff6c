#include "reader/report/tree_view.hpp"
// A comment.

#include <absl/strings/str_cat.h>

#include "reader/render/report_parts.hpp"

namespace arctrace::reader {
namespace {

// Calls `row` for the nodes that `options` shows; returns how many subtrees are left out
// for their size, or rows for the limit (then at least one).
uint64_t walk_rows(const TreeGroup& group, const Functions& functions,
                   const ViewOptions& options,
                   absl::FunctionRef<bool(const TreePlace&)> row) {
  const CallTree& tree = *group.tree;
  const uint64_t all_ns = tree[group.root].cum_ns;
  uint64_t rows = 0, left_out = 0;
  walk_tree(tree, functions, group.root, options.sort, [&](const TreePlace& place) {
    if (!is_large_enough(tree[place.node].cum_ns, all_ns, options)) {
      ++left_out;
      return Step::kOver;
    }
    if (rows == options.limit) {
      ++left_out;
      return Step::kOver;
    }
    ++rows;
    return row(place) ? Step::kInto : Step::kStop;
  });
  return left_out;
}

uint64_t calls_made(const CallTree& tree, NodeIndex node) {
  uint64_t calls = 0;
  for (NodeIndex c = tree[node].first_child; c != kNoNode; c = tree[c].next_sibling) {
    calls += tree[c].calls;
  }
  return calls;
}

}  // namespace

void write_tree_text(const TreeGroups& groups, Replay& replay, const ViewOptions& options,
                     const WriteText& write) {
  FunctionNames names(replay, options);
  std::string head;
  append_tinted(head, options.style, Tint::kHead,
                absl::StrCat(" Lv  RL", kSumsHead,
                             replay.has_dispatches() ? kCpuHead : "", "  Name"));
  bool more = true;
  for (const TreeGroup& group : groups.groups()) {
    if (!more) return;
    const CallTree& tree = *group.tree;
    const uint64_t all_ns = tree[group.root].cum_ns;
    more = write("\n" + head + "\n");
    const uint64_t left_out =
        walk_rows(group, replay.functions(), options, [&](const TreePlace& place) {
          const CallNode& node = tree[place.node];
          std::string row;
          append_right(row, absl::StrCat(place.level), 3);
          append_right(row, absl::StrCat(place.level == 0 ? 0 : place.recursion), 4);
          append_sums(row, node.calls, node.base_ns, node.cum_ns, all_ns);
          if (replay.has_dispatches()) {
            append_cpu(row, tree.cpu_cum(place.node));
          }
          row.append(2 + indent_columns(place.level), ' ');
          append_name(row,
                      place.level == 0 ? group_title(group, groups.grouping())
                                       : names.text(node.function),
                      marks_text(tree.marks(place.node)), is_hot(node.base_ns, all_ns),
                      options.style);
          more = write(row);
          return more;
        });
    if (more) more = write(left_out_text(left_out));
  }
}

void write_tree_json(const TreeGroups& groups, Replay& replay, const ViewOptions& options,
                     JsonWriter& json) {
  FunctionNames names(replay, options);
  json.key(grouping_key(groups.grouping())).begin_array();
  for (const TreeGroup& group : groups.groups()) {
    const CallTree& tree = *group.tree;
    begin_group_json(group, groups.grouping(), json);
    json.key("root");
    uint32_t open = 0;  // nodes whose children are being written
    walk_rows(group, replay.functions(), options, [&](const TreePlace& place) {
      for (; open > place.level; --open) {
        json.end();
        json.end();
      }
      ++open;
      const CallNode& node = tree[place.node];
      json.begin_object();
      if (place.level == 0) {
        json.member("name", group.name);
      } else {
        write_function_json(node.function, names, json);
      }
      write_sums_json(node.calls, node.base_ns, node.cum_ns, json);
      write_cpu_json(tree.cpu_cum(place.node), replay.known_times(), json);
      write_marks_json(tree.marks(place.node), json);
      json.key("children").begin_array();
      return json.good();
    });
    for (; open > 0; --open) {
      json.end();
      json.end();
    }
    json.end();
  }
  json.end();
}

void write_log_rt_text(const TreeGroups& groups, Replay& replay,
                       const ViewOptions& options, const WriteText& write) {
  FunctionNames names(replay, options);
  bool more = write("LV CALLS CEE BASE DS IN NAME\n");
  for (const TreeGroup& group : groups.groups()) {
    if (!more) return;
    const CallTree& tree = *group.tree;
    walk_rows(group, replay.functions(), options, [&](const TreePlace& place) {
      const CallNode& node = tree[place.node];
      more = write(absl::StrCat(place.level, " ", node.calls, " ",
                                calls_made(tree, place.node), " ", node.base_ns, " 0 0 ",
                                place.level == 0 ? group_title(group, groups.grouping())
                                                 : names.text(node.function),
                                "\n"));
      return more;
    });
  }
}

void write_log_rt_json(const TreeGroups& groups, Replay& replay,
                       const ViewOptions& options, JsonWriter& json) {
  FunctionNames names(replay, options);
  json.key("log_rt").begin_array();
  for (const TreeGroup& group : groups.groups()) {
    const CallTree& tree = *group.tree;
    walk_rows(group, replay.functions(), options, [&](const TreePlace& place) {
      const CallNode& node = tree[place.node];
      json.begin_object();
      json.member("lv", place.level);
      json.member("calls", node.calls);
      json.member("cee", calls_made(tree, place.node));
      json.member("base_ns", node.base_ns);
      json.member("ds", uint32_t{0});
      json.member("in", uint32_t{0});
      if (place.level == 0) {
        json.member("name", group_title(group, groups.grouping()));
      } else {
        write_function_json(node.function, names, json);
      }
      json.end();
      return json.good();
    });
  }
  json.end();
}

}  // namespace arctrace::reader
