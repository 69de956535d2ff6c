#include "reader/report/log_rt_view.hpp"

#include <absl/strings/str_cat.h>

#include "reader/render/report_parts.hpp"
#include "reader/report/group_view.hpp"
#include "reader/report/tree_rows.hpp"

namespace arctrace::reader {
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
