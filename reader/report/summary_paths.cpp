// Sections of the summary: the critical path, and the loops in which threads wait for
// work.
#include <absl/container/btree_map.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "reader/render/report_parts.hpp"
#include "reader/render/session_text.hpp"
#include "reader/render/text_style.hpp"
#include "reader/report/critical_path_view.hpp"
#include "reader/report/summary_lines.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

constexpr size_t kPathNamesMax = 6;
constexpr size_t kPathBarColumns = 8;
constexpr double kPathLeastPercent = 2;

// Returns "make  running in main" if it did nothing else; else the path where it was
// longest, and the parts of the time: "make  mostly in main: running 12.0 ms, disk 3.00
// ms". Only the path is cut.
std::string row_of_name(const std::string& columns, const CriticalPathName& row,
                        const TextStyle& style) {
  const auto count = std::count_if(row.states.begin(), row.states.end(),
                                   [](uint64_t time_ns) { return time_ns != 0; });
  if (count == 1) {
    const auto state = std::find_if(row.states.begin(), row.states.end(),
                                    [](uint64_t time_ns) { return time_ns != 0; });
    const std::string name(
        path_state_name(static_cast<PathState>(state - row.states.begin())));
    const std::string before =
        absl::StrCat(row.name, "  ", name, row.path.empty() ? "" : " in ");
    const size_t used = columns_of(columns) + columns_of(before);
    return summary_row(columns, before + overview_path(row.path, used, style), "", false,
                       style);
  }
  const std::string states = ": " + path_states_text(row.states);
  const std::string before =
      absl::StrCat(row.name, row.path.empty() ? "" : "  mostly in ");
  const size_t used = columns_of(columns) + states.size();
  const std::string name =
      before + overview_path(row.path, used + columns_of(before), style);
  const size_t left = style.width > used ? style.width - used : 1;
  return absl::StrCat(columns, style.width == 0 ? name : cut_name(name, left, style),
                      states);
}

}  // namespace

SummarySection critical_section(const SummaryFacts& facts, FunctionLabels& labels,
                                const TextStyle& style) {
  SummarySection section;
  if (facts.log == nullptr ||
      !explains_duration(facts.replay, facts.session, facts.serving)) {
    return section;
  }
  const std::optional<PathEnd> end = whole_stretch(*facts.log, facts.replay);
  if (!end.has_value()) return section;
  const CriticalPath path = critical_path(*facts.log, facts.replay, *end);
  const uint64_t wall_ns = path.wall_ns();
  const TimeScale scale = time_scale(wall_ns);
  std::string head;
  append_right(head, scale.unit, 8);
  append_right(head, "%", 6);
  head.append(1 + kPathBarColumns, ' ');
  section.head = summary_head(
      absl::StrCat(head, "  What the ", duration_text(wall_ns), " depended on"), style);
  const auto columns = [&](uint64_t time_ns) {
    std::string row;
    append_right(row, scaled_text(time_ns, scale), 8);
    append_right(row, share_text(time_ns, wall_ns), 6);
    const std::string bar = bar_text(time_ns, wall_ns, kPathBarColumns, style);
    absl::StrAppend(&row, " ", bar);
    row.append(kPathBarColumns - columns_of(bar), ' ');
    return row + "  ";
  };
  const std::vector<CriticalPathName> all =
      critical_path_by_name(critical_path_rows(path, facts.replay, labels));
  const auto is_shown = [&](const CriticalPathName& row) {
    return static_cast<double>(row.time_ns) * 100 >=
           static_cast<double>(wall_ns) * kPathLeastPercent;
  };
  for (size_t i = 0; i < all.size(); ++i) {
    if (i == kPathNamesMax || (i != 0 && !is_shown(all[i]))) break;
    section.rows.push_back(row_of_name(columns(all[i].time_ns), all[i], style));
  }
  for (size_t i = 0; i <= section.rows.size(); ++i) {
    CriticalPathName others;
    others.name = others_name(all.size() - i);
    for (size_t k = i; k < all.size(); ++k) {
      others.time_ns += all[k].time_ns;
      for (size_t state = 0; state < kPathStates; ++state) {
        others.states[state] += all[k].states[state];
      }
    }
    section.others.push_back(
        i == all.size() ? "" : row_of_name(columns(others.time_ns), others, style));
  }
  section.end.push_back(
      wrap_line(absl::StrCat("  in all: ", critical_states_text(path)), 4, style));
  return section;
}

// ---- Threads that wait for work -----------------------------------------------------

namespace {

constexpr size_t kLoopsMax = 3;

// Loops of threads with one name, in one function.
struct LikeLoops {
  std::string name;
  bool is_from_outside = false;
  uint64_t threads = 0, calls = 0, waits = 0, no_work_ns = 0, life_ns = 0;
  int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;
  DurationHistogram work;
};

std::vector<LikeLoops> like_loops(const SummaryFacts& facts, FunctionLabels& labels) {
  const Definitions& definitions = facts.replay.definitions();
  absl::btree_map<std::pair<std::string, bool>, LikeLoops> by_name;
  for (const WorkLoop& loop : facts.serving.loops) {
    const std::string name =
        absl::StrCat(labels.text(loop.function(facts.replay)), " of ",
                     escaped(thread_label(definitions, loop.thread)));
    LikeLoops& like = by_name[{name, loop.is_from_outside}];
    like.name = name;
    like.is_from_outside = loop.is_from_outside;
    ++like.threads;
    like.calls += loop.calls;
    like.waits += loop.waits;
    like.no_work_ns += loop.no_work_ns;
    like.first_ns = std::min(like.first_ns, loop.first_ns);
    like.last_ns = std::max(like.last_ns, loop.last_ns);
    if (loop.work != nullptr) like.work.add(*loop.work);
    for (const ThreadTree& tree : facts.replay.threads()) {
      if (tree.thread != loop.thread) continue;
      like.life_ns +=
          static_cast<uint64_t>(tree.stop_ns) - static_cast<uint64_t>(tree.start_ns);
    }
  }
  std::vector<LikeLoops> all;
  for (auto& [key, like] : by_name) all.push_back(std::move(like));
  std::stable_sort(all.begin(), all.end(), [](const LikeLoops& a, const LikeLoops& b) {
    return a.waits > b.waits;
  });
  return all;
}

// "3,060 times work, 5,410 a second: p50 31.2 us, p99 212 us, max 1.20 ms"
std::string work_text(const LikeLoops& like) {
  const DurationHistogram& work = like.work;
  if (work.count() == 0) return {};
  std::string text = work.count() == 1
                         ? std::string("work once")
                         : absl::StrCat(grouped_text(work.count()), " times work");
  const auto stretch_ns =
      static_cast<uint64_t>(like.last_ns) - static_cast<uint64_t>(like.first_ns);
  constexpr double kSecond_ns = 1e9;
  if (stretch_ns != 0) {
    const double rate =
        static_cast<double>(work.count()) * kSecond_ns / static_cast<double>(stretch_ns);
    if (rate >= 1) {
      absl::StrAppend(&text, ", ", grouped_text(static_cast<uint64_t>(rate)),
                      " a second");
    }
  }
  text += ":";
  for (const auto& [name, per_mille] : {std::pair{"p50", 500}, std::pair{"p99", 990}}) {
    if (const auto time_ns = work.quantile_ns(static_cast<uint64_t>(per_mille))) {
      absl::StrAppend(&text, " ", name, " ", call_time_text(*time_ns), ",");
    }
  }
  return absl::StrCat(text, " max ", call_time_text(work.max_ns()));
}

// "3 threads slept throughout: bio_aof, bio_close_file, bio_lazy_free"
std::string sleepers_text(const SummaryFacts& facts) {
  std::vector<std::string> names;
  for (const ThreadIndex thread : facts.serving.sleepers) {
    names.push_back(escaped(thread_label(facts.replay.definitions(), thread)));
  }
  if (names.empty()) return {};
  std::string text = count_text(names.size(), "thread") + " slept throughout:";
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (const std::string& name : names) {
    absl::StrAppend(&text, &name == &names.front() ? " " : ", ", name);
  }
  return text;
}

}  // namespace

SummarySection serving_section(const SummaryFacts& facts, FunctionLabels& labels,
                               const TextStyle& style) {
  SummarySection section;
  const std::vector<LikeLoops> all = like_loops(facts, labels);
  if (all.empty()) return section;
  uint64_t largest_ns = 0;
  for (const LikeLoops& like : all) largest_ns = std::max(largest_ns, like.no_work_ns);
  const TimeScale scale = time_scale(largest_ns);
  std::string head;
  append_right(head, scale.unit, 8);
  append_right(head, "%", 6);
  append_right(head, "Waits", 12);
  section.head = summary_head(head + "  No work, in loops that wait for it", style);
  const auto columns = [&](const LikeLoops& like) {
    std::string row;
    append_right(row, scaled_text(like.no_work_ns, scale), 8);
    append_right(row, share_text(like.no_work_ns, like.life_ns), 6);
    append_right(row, grouped_text(like.waits), 12);
    return row + "  ";
  };
  for (size_t i = 0; i < std::min(all.size(), kLoopsMax); ++i) {
    const LikeLoops& like = all[i];
    const std::string threads =
        like.threads == 1 ? ""
                          : absl::StrCat(", ", grouped_text(like.threads), " threads");
    std::string row = summary_row(
        columns(like), like.name + threads,
        like.is_from_outside ? ": from outside" : ": from other threads", false, style);
    if (like.calls / 2 > like.waits) {
      absl::StrAppend(&row, "\n  ", grouped_text(like.calls - like.waits),
                      " calls of it did not wait");
    }
    if (const std::string work = work_text(like); !work.empty()) {
      absl::StrAppend(&row, "\n", wrap_line("  " + work, 4, style));
    }
    section.rows.push_back(std::move(row));
  }
  for (size_t i = 0; i <= section.rows.size(); ++i) {
    LikeLoops others;
    for (size_t k = i; k < all.size(); ++k) {
      others.no_work_ns += all[k].no_work_ns;
      others.life_ns += all[k].life_ns;
      others.waits += all[k].waits;
    }
    section.others.push_back(
        i == all.size() ? "" : columns(others) + others_name(all.size() - i));
  }
  if (const std::string sleepers = sleepers_text(facts); !sleepers.empty()) {
    section.end.push_back(wrap_line("  " + sleepers, 4, style));
  }
  if (facts.serving.is_server) {
    section.end.push_back(
        "  neither is in what the time was spent on, nor in functions and paths");
  }
  return section;
}

}  // namespace arctrace::reader
