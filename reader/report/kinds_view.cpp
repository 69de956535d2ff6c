#include "reader/report/kinds_view.hpp"

#include <absl/strings/str_cat.h>

#include "reader/analysis/kind_totals.hpp"
#include "reader/report/function_rows.hpp"

namespace arctrace::reader {
namespace {

std::vector<KindTotal> kind_rows(const TreeGroup& group, const Functions& functions,
                                 const ViewOptions& options, uint64_t& left_out) {
  std::vector<KindTotal> rows =
      kind_totals(*group.tree, functions, group.root, options.sort);
  left_out = keep_shown(rows, (*group.tree)[group.root].cum_ns, options,
                        [](const KindTotal& row) { return row.cum_ns; });
  return rows;
}

}  // namespace

void write_kinds_text(const TreeGroups& groups, Replay& replay,
                      const ViewOptions& options, const WriteText& write) {
  FunctionNames names(replay, options);
  for (const TreeGroup& group : groups.groups()) {
    const uint64_t all_ns = (*group.tree)[group.root].cum_ns;
    uint64_t left_out = 0;
    const std::vector<KindTotal> kinds =
        kind_rows(group, replay.functions(), options, left_out);
    std::string text = group_head(group, groups.grouping(), options.style);
    append_tinted(
        text, options.style, Tint::kHead,
        absl::StrCat(kSumsHead, replay.has_dispatches() ? kCpuHead : "", "  Kind"));
    text += '\n';
    if (kinds.empty() && left_out == 0) text += "  (no call of a well-known function)\n";
    const auto append_row = [&](const auto& total, const std::string& name,
                                const std::string& notes) {
      std::string row;
      append_sums(row, total.calls, total.base_ns, total.cum_ns, all_ns);
      if (replay.has_dispatches()) append_cpu(row, total.cpu);
      row += "  ";
      append_name(row, name, notes, false, options.style);
      text += row;
    };
    for (const KindTotal& kind : kinds) {
      append_row(kind, std::string(kind_name(kind.kind)), "");
      for (const FunctionTotal& function : kind.functions) {
        append_row(function, "  " + names.text(function.function),
                   total_notes(function, names));
      }
    }
    if (!write(text) || !write(left_out_text(left_out))) return;
  }
}

void write_kinds_json(const TreeGroups& groups, Replay& replay,
                      const ViewOptions& options, JsonWriter& json) {
  FunctionNames names(replay, options);
  for_groups_json(groups, json, [&](const TreeGroup& group) {
    uint64_t left_out = 0;
    json.key("kinds").begin_array();
    for (const KindTotal& kind :
         kind_rows(group, replay.functions(), options, left_out)) {
      json.begin_object();
      json.member("name", kind_name(kind.kind));
      write_sums_json(kind.calls, kind.base_ns, kind.cum_ns, json);
      write_cpu_json(kind.cpu, replay.known_times(), json);
      json.key("functions").begin_array();
      for (const FunctionTotal& function : kind.functions) {
        json.begin_object();
        write_total_json(function, names, replay.known_times(), json);
        json.end();
      }
      json.end();
      json.end();
    }
    json.end();
  });
}

}  // namespace arctrace::reader
