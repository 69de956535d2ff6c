#include "reader/report/arcs_view.hpp"

#include <absl/strings/str_cat.h>

#include "reader/render/columns.hpp"
#include "reader/render/frame_marks.hpp"
#include "reader/render/recorded_notes.hpp"
#include "reader/report/function_rows.hpp"
#include "reader/report/group_view.hpp"

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
    const Columns columns(options_, replay.has_dispatches(), kSourceHead.size());
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

  // The lines of one function, and an empty one.
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

}  // namespace arctrace::reader
