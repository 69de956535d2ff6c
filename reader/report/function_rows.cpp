#include "reader/report/function_rows.hpp"

#include <absl/strings/str_cat.h>

#include "reader/render/frame_marks.hpp"
#include "reader/render/recorded_notes.hpp"

namespace arctrace::reader {

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

}  // namespace arctrace::reader
