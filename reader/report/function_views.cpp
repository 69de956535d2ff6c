#include "reader/report/function_views.hpp"

#include <absl/strings/str_cat.h>

#include "reader/report/function_rows.hpp"

namespace arctrace::reader {
namespace {

// Who calls the outermost functions.
constexpr const char* kNoFunction = "[thread]";

std::vector<FunctionTotal> flat_rows(const TreeGroup& group, const Functions& functions,
                                     const ViewOptions& options, uint64_t& left_out) {
  std::vector<FunctionTotal> rows =
      function_totals(*group.tree, functions, group.root, options.sort);
  left_out = keep_shown(rows, (*group.tree)[group.root].cum_ns, options,
                        [](const FunctionTotal& row) { return row.cum_ns; });
  return rows;
}

std::vector<FunctionArcs> arc_rows(const TreeGroup& group, const Functions& functions,
                                   const ViewOptions& options, uint64_t& left_out) {
  std::vector<FunctionArcs> rows =
      function_arcs(*group.tree, functions, group.root, options.sort);
  left_out = keep_shown(rows, (*group.tree)[group.root].cum_ns, options,
                        [](const FunctionArcs& row) { return row.own.cum_ns; });
  return rows;
}

void write_arcs_json(const char* key, const std::vector<Arc>& arcs, FunctionNames& names,
                     KnownTimes known, JsonWriter& json) {
  json.key(key).begin_array();
  for (const Arc& arc : arcs) {
    json.begin_object();
    if (arc.function == kRootFunction) {
      json.member("name", kNoFunction);
    } else {
      write_function_json(arc.function, names, json);
    }
    write_sums_json(arc.calls, arc.base_ns, arc.cum_ns, json);
    write_cpu_json(arc.cpu, known, json);
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
      append_name(row, names.text(rows[i].function), total_notes(rows[i], names),
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
      write_total_json(total, names, replay.known_times(), json);
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
      append_name(row, names.text(arcs.own.function), total_notes(arcs.own, names),
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
      write_total_json(arcs.own, names, replay.known_times(), json);
      write_arcs_json("parents", arcs.parents, names, replay.known_times(), json);
      write_arcs_json("children", arcs.children, names, replay.known_times(), json);
      json.end();
    }
    json.end();
  });
}

}  // namespace arctrace::reader
