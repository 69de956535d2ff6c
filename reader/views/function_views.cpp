#include "reader/views/function_views.hpp"

#include <absl/strings/str_cat.h>

#include "reader/views/function_totals.hpp"
#include "reader/views/report_parts.hpp"

namespace arctrace::reader {
namespace {

// Who calls the outermost functions.
constexpr const char* kNoFunction = "[thread]";

// Takes out the rows that `options` does not show; returns how many.
template <class Row, class TotalOf>
uint64_t keep_shown(std::vector<Row>& rows, uint64_t all_ns, const ViewOptions& options,
                    TotalOf total_of) {
  const size_t before = rows.size();
  std::erase_if(rows, [&](const Row& row) {
    return !is_large_enough(total_of(row).cum_ns, all_ns, options);
  });
  if (rows.size() > options.limit) {
    rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(options.limit), rows.end());
  }
  return before - rows.size();
}

std::vector<FunctionTotal> flat_rows(const TreeGroup& group, const Functions& functions,
                                     const ViewOptions& options, uint64_t& left_out) {
  std::vector<FunctionTotal> rows =
      function_totals(*group.tree, functions, group.root, options.sort);
  left_out =
      keep_shown(rows, (*group.tree)[group.root].cum_ns, options,
                 [](const FunctionTotal& row) -> const FunctionTotal& { return row; });
  return rows;
}

std::vector<FunctionArcs> arc_rows(const TreeGroup& group, const Functions& functions,
                                   const ViewOptions& options, uint64_t& left_out) {
  std::vector<FunctionArcs> rows =
      function_arcs(*group.tree, functions, group.root, options.sort);
  left_out =
      keep_shown(rows, (*group.tree)[group.root].cum_ns, options,
                 [](const FunctionArcs& row) -> const FunctionTotal& { return row.own; });
  return rows;
}

// " in lua", and what was not as usual.
std::string notes_of(const FunctionTotal& total, const FunctionNames& names) {
  std::string notes;
  const std::string module = names.module_text(total.function);
  if (!module.empty()) notes = " in " + module;
  if (total.recursion > 1) {
    absl::StrAppend(&notes, " [recursion to level ", total.recursion, "]");
  }
  return notes += marks_text(total.marks);
}

// The line above a group's table, and the time that is in no function.
std::string group_head(const TreeGroup& group, Grouping grouping,
                       const TextStyle& style) {
  const CallNode& root = (*group.tree)[group.root];
  std::string head = "\n";
  append_tinted(head, style, Tint::kHead, group_title(group, grouping));
  absl::StrAppend(&head, ": ", duration_text(root.cum_ns));
  if (root.base_ns != 0) {
    absl::StrAppend(&head, ", of it ", duration_text(root.base_ns), " in no function");
  }
  return head + marks_text(group.tree->marks(group.root)) + "\n";
}

void write_total_json(const FunctionTotal& total, FunctionNames& names,
                      bool has_cpu_times, JsonWriter& json) {
  write_function_json(total.function, names, json);
  write_sums_json(total.calls, total.base_ns, total.cum_ns, json);
  if (has_cpu_times) write_cpu_json(total.cpu, json);
  if (total.recursion > 1) json.member("recursion", total.recursion);
  write_marks_json(total.marks, json);
}

void write_arcs_json(const char* key, const std::vector<Arc>& arcs, FunctionNames& names,
                     bool has_cpu_times, JsonWriter& json) {
  json.key(key).begin_array();
  for (const Arc& arc : arcs) {
    json.begin_object();
    if (arc.function == kRootFunction) {
      json.member("name", kNoFunction);
    } else {
      write_function_json(arc.function, names, json);
    }
    write_sums_json(arc.calls, arc.base_ns, arc.cum_ns, json);
    if (has_cpu_times) write_cpu_json(arc.cpu, json);
    json.end();
  }
  json.end();
}

// Calls `write_rows` for each group, in the array that its grouping makes of it.
template <class WriteRows>
void for_groups_json(const TreeGroups& groups, JsonWriter& json, WriteRows write_rows) {
  if (groups.grouping() == Grouping::kAll) {
    write_rows(groups.groups().front());
    return;
  }
  json.key(grouping_key(groups.grouping())).begin_array();
  for (const TreeGroup& group : groups.groups()) {
    begin_group_json(group, groups.grouping(), json);
    write_rows(group);
    json.end();
  }
  json.end();
}

void append_arc(std::string& row, const char* source, const Arc& arc, uint64_t all_ns,
                bool has_cpu_times, FunctionNames& names, const TextStyle& style) {
  append_left(row, source, 8);
  append_sums(row, arc.calls, arc.base_ns, arc.cum_ns, all_ns);
  if (has_cpu_times) append_cpu(row, arc.cpu);
  row += "    ";
  append_name(row, arc.function == kRootFunction ? kNoFunction : names.text(arc.function),
              "", false, style);
}

}  // namespace

void write_flat_text(const TreeGroups& groups, Replay& replay, const ViewOptions& options,
                     const WriteText& write) {
  FunctionNames names(replay, options);
  for (const TreeGroup& group : groups.groups()) {
    const uint64_t all_ns = (*group.tree)[group.root].cum_ns;
    uint64_t left_out = 0;
    const std::vector<FunctionTotal> rows =
        flat_rows(group, replay.functions(), options, left_out);
    std::string text = group_head(group, groups.grouping(), options.style);
    append_tinted(text, options.style, Tint::kHead,
                  absl::StrCat(kSumsHead, replay.has_dispatches() ? kCpuHead : "",
                               "    Ind  Name"));
    text += '\n';
    if (!write(text)) return;
    for (size_t i = 0; i < rows.size(); ++i) {
      std::string row;
      append_sums(row, rows[i].calls, rows[i].base_ns, rows[i].cum_ns, all_ns);
      if (replay.has_dispatches()) append_cpu(row, rows[i].cpu);
      append_right(row, absl::StrCat(i + 1), 7);
      row += "  ";
      append_name(row, names.text(rows[i].function), notes_of(rows[i], names),
                  is_hot(rows[i].base_ns, all_ns), options.style);
      if (!write(row)) return;
    }
    if (!write(left_out_text(left_out))) return;
  }
}

void write_flat_json(const TreeGroups& groups, Replay& replay, const ViewOptions& options,
                     JsonWriter& json) {
  FunctionNames names(replay, options);
  for_groups_json(groups, json, [&](const TreeGroup& group) {
    uint64_t left_out = 0;
    json.key("functions").begin_array();
    for (const FunctionTotal& total :
         flat_rows(group, replay.functions(), options, left_out)) {
      json.begin_object();
      write_total_json(total, names, replay.has_dispatches(), json);
      json.end();
    }
    json.end();
  });
}

void write_arcs_text(const TreeGroups& groups, Replay& replay, const ViewOptions& options,
                     const WriteText& write) {
  FunctionNames names(replay, options);
  for (const TreeGroup& group : groups.groups()) {
    const uint64_t all_ns = (*group.tree)[group.root].cum_ns;
    uint64_t left_out = 0;
    const std::vector<FunctionArcs> rows =
        arc_rows(group, replay.functions(), options, left_out);
    const bool has_cpu_times = replay.has_dispatches();
    std::string text = group_head(group, groups.grouping(), options.style);
    append_tinted(
        text, options.style, Tint::kHead,
        absl::StrCat("Source  ", kSumsHead, has_cpu_times ? kCpuHead : "", "  Function"));
    text += '\n';
    if (!write(text)) return;
    for (const FunctionArcs& arcs : rows) {
      std::string block;
      for (const Arc& arc : arcs.parents) {
        append_arc(block, "parent", arc, all_ns, has_cpu_times, names, options.style);
      }
      std::string row;
      append_left(row, "self", 8);
      append_sums(row, arcs.own.calls, arcs.own.base_ns, arcs.own.cum_ns, all_ns);
      if (has_cpu_times) append_cpu(row, arcs.own.cpu);
      row += "  ";
      append_name(row, names.text(arcs.own.function), notes_of(arcs.own, names),
                  is_hot(arcs.own.base_ns, all_ns), options.style);
      block += row;
      for (const Arc& arc : arcs.children) {
        append_arc(block, "child", arc, all_ns, has_cpu_times, names, options.style);
      }
      block += '\n';
      if (!write(block)) return;
    }
    if (!write(left_out_text(left_out))) return;
  }
}

void write_arcs_json(const TreeGroups& groups, Replay& replay, const ViewOptions& options,
                     JsonWriter& json) {
  FunctionNames names(replay, options);
  for_groups_json(groups, json, [&](const TreeGroup& group) {
    uint64_t left_out = 0;
    json.key("arcs").begin_array();
    for (const FunctionArcs& arcs :
         arc_rows(group, replay.functions(), options, left_out)) {
      json.begin_object();
      write_total_json(arcs.own, names, replay.has_dispatches(), json);
      write_arcs_json("parents", arcs.parents, names, replay.has_dispatches(), json);
      write_arcs_json("children", arcs.children, names, replay.has_dispatches(), json);
      json.end();
    }
    json.end();
  });
}

}  // namespace arctrace::reader
