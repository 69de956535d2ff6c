#include "reader/ui/model/page_totals.hpp"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <bit>
#include <string>
#include <vector>

#include "reader/analysis/function_totals.hpp"
#include "reader/analysis/kind_totals.hpp"
#include "reader/analysis/recorded_state.hpp"
#include "reader/render/labels.hpp"
#include "reader/render/left_out.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/ui/model/page_summary.hpp"

namespace arctrace::reader {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  return absl::StrSplit(text, '\n', absl::SkipWhitespace());
}

void write_histogram(const DurationHistogram& times, JsonWriter& json) {
  json.begin_array();
  bool is_first = true;
  times.for_powers([&](uint64_t from_ns, uint64_t /*until_ns*/, uint64_t durations) {
    // A duration of 0 has no power of two: its column is before the first one.
    if (is_first)
      json.value(from_ns == 0 ? -1 : static_cast<int>(std::bit_width(from_ns)) - 1);
    is_first = false;
    json.value(durations);
  });
  json.end();
}

void write_total(const FunctionTotal& total, const DurationHistogram* times,
                 std::span<const FunctionId> ids, JsonWriter& json) {
  json.begin_array();
  json.value(id_on_page(total.function, ids));
  json.value(total.calls);
  json.value(total.self_ns);
  json.value(total.total_ns);
  json.value(total.cpu.off_ns);
  json.value(total.cpu.ready_ns);
  if (times != nullptr && times->count() != 0) {
    json.value(times->count());
    json.value(times->average_ns());
    json.value(times->min_ns());
    for (const uint64_t share : {500U, 900U, 990U}) json.value(times->quantile_ns(share));
    json.value(times->max_ns());
    write_histogram(*times, json);
  } else {
    json.value(0);
  }
  json.end();
}

// Members parts, of_all_ns and totals.
void write_sums(const PageFacts& facts, const TreeGroup& group,
                const std::vector<FunctionTotal>& totals, std::span<const FunctionId> ids,
                JsonWriter& json) {
  json.key("parts").begin_array();
  for (const TimePart& part : time_parts(*group.tree, facts.replay, group.root)) {
    json.begin_object();
    json.member("name", safe_name(part.name));
    json.member("calls", part.calls);
    json.member("self_ns", part.self_ns);
    write_off_json(part.cpu, json);
    json.end();
  }
  json.end();
  json.member("of_all_ns", (*group.tree)[group.root].total_ns);
  json.key("totals").begin_array();
  for (const FunctionTotal& total : totals) {
    write_total(total, facts.parts.times().find(group, total.function), ids, json);
  }
  json.end();
}

void write_marks(const PageFacts& facts, const std::vector<FunctionTotal>& totals,
                 std::span<const FunctionId> ids, JsonWriter& json) {
  bool has_overhead = false;
  json.key("marks").begin_array();
  for (const FunctionTotal& total : totals) {
    std::string marks = own_work_note(total.function, total.overhead_ps, facts.replay);
    if (marks.empty()) {
      marks = overhead_note(total.self_ns, total.overhead_ps, facts.replay);
      has_overhead |= !marks.empty();
    }
    marks.insert(0, within_text(total.marks.within_ns()));
    if (marks.empty()) continue;
    json.begin_array();
    json.value(id_on_page(total.function, ids));
    json.value(safe_text(marks));
    json.end();
  }
  json.end();
  write_lines_json("marks_legend", lines_of(overhead_legend(has_overhead, facts.replay)),
                   json);
}

void write_notes(const RecordedStates& recorded, std::span<const FunctionId> ids,
                 JsonWriter& json) {
  json.key("notes").begin_array();
  for (const FunctionId function : recorded.incomplete()) {
    json.begin_array();
    json.value(id_on_page(function, ids));
    json.value(safe_text(recorded_note(recorded.of(function))));
    json.end();
  }
  json.end();
  write_lines_json("notes_legend",
                   lines_of(recorded_legend(recorded, !recorded.incomplete().empty())),
                   json);
}

std::vector<FunctionTotal> totals_of(const PageFacts& facts, const TreeGroup& group) {
  return function_totals(*group.tree, facts.replay.functions(), group.root,
                         SortKey::kSelf);
}

}  // namespace

void write_totals_json(const PageFacts& facts, std::span<const FunctionId> ids,
                       JsonWriter& json) {
  const TreeGroups groups(facts.replay, Grouping::kAll,
                          TreeGroups::Of::kThreadsAndInterrupts);
  const TreeGroup& all = groups.groups().front();
  const std::vector<FunctionTotal> totals = totals_of(facts, all);
  write_sums(facts, all, totals, ids, json);
  PageSummary summary(facts);
  json.key("busy");
  if (const TreeGroup* busy = summary.busy()) {
    json.begin_object();
    write_sums(facts, *busy, totals_of(facts, *busy), ids, json);
    json.end();
  } else {
    json.value(nullptr);
  }
  write_marks(facts, totals, ids, json);
  write_notes(summary.recorded(), ids, json);
  summary.write_recording_json(json);
  summary.write_serving_json(json);
}

}  // namespace arctrace::reader
