#include "reader/terminal/live_screen.hpp"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "reader/render/session_text.hpp"
#include "reader/render/text_style.hpp"

namespace arctrace::terminal {
namespace {

using reader::CpuSource;
using reader::LiveCpu;
using reader::LiveModel;
using reader::LiveRow;
using reader::LiveSort;
using reader::LiveTable;

constexpr int kLinesMin = 8, kColumnsMin = 40;
constexpr int kColumnsForStackBeside = 110;
constexpr size_t kBarsShown = 16;

// Returns the newest values as bars, relative to `most`; 0: to the largest of them.
std::string sparkline(const std::vector<uint64_t>& values, uint64_t most, bool is_utf8) {
  constexpr std::array<std::string_view, 9> kBlocks = {" ", "▁", "▂", "▃", "▄",
                                                       "▅", "▆", "▇", "█"};
  constexpr std::array<std::string_view, 9> kAscii = {" ", ".", ":", "-", "=",
                                                      "+", "*", "#", "@"};
  const auto& bars = is_utf8 ? kBlocks : kAscii;
  const size_t count = std::min(values.size(), kBarsShown);
  if (most == 0 && count != 0) {
    most = *std::max_element(values.end() - static_cast<std::ptrdiff_t>(count),
                             values.end());
  }
  std::string line(kBarsShown - count, ' ');
  for (size_t i = values.size() - count; i < values.size(); ++i) {
    const double share =
        most == 0 ? 0 : static_cast<double>(values[i]) / static_cast<double>(most);
    const auto level = static_cast<size_t>(share * 8);
    line += bars[values[i] == 0 ? 0 : std::max<size_t>(level, 1)];
  }
  return line;
}

std::string percent_of(uint64_t part, int64_t whole_ns) {
  return absl::StrFormat("%5.1f", whole_ns <= 0 ? 0
                                                : 100 * static_cast<double>(part) /
                                                      static_cast<double>(whole_ns));
}

std::string cut_to(std::string_view name, int width, bool is_utf8) {
  reader::TextStyle style;
  style.utf8 = is_utf8;
  return reader::cut_name(name, static_cast<size_t>(std::max(width, 1)), style);
}

std::string rate_text(double per_second) {
  return reader::grouped_text(static_cast<uint64_t>(std::llround(per_second)));
}

std::string_view sort_name(LiveSort sort) {
  constexpr std::array<std::string_view, 5> kNames = {"self", "on CPU", "total", "calls",
                                                      "name"};
  return kNames[static_cast<size_t>(sort)];
}

// Returns what the thread does, and how that is known.
std::string state_line(const LiveCpu& cpu) {
  if (cpu.source == CpuSource::kNone) return "state not known";
  std::string line =
      absl::StrCat(cpu.source == CpuSource::kProc ? "/proc: " : "kernel: ", cpu.state);
  if (cpu.for_ns >= 0) {
    absl::StrAppend(&line, ", for ",
                    reader::duration_text(static_cast<uint64_t>(cpu.for_ns)));
  }
  return line;
}

// Returns how much of the last seconds the thread was on a CPU.
std::string cpu_line(const LiveCpu& cpu, bool is_utf8) {
  if (cpu.wall_ns == 0) return "";
  const auto share = [&cpu](uint64_t part_ns) {
    return percent_of(part_ns, static_cast<int64_t>(cpu.wall_ns));
  };
  std::string line = absl::StrCat("on CPU ", share(cpu.cpu_ns), " %");
  if (cpu.has_ready) absl::StrAppend(&line, "  ready ", share(cpu.ready_ns), " %");
  if (cpu.unknown_ns != 0) {
    absl::StrAppend(&line, "  not known ", share(cpu.unknown_ns), " %");
  }
  return absl::StrCat(line, "  ", sparkline(cpu.history, 1000, is_utf8));
}

// Returns what is left out on purpose, in the words of `arctrace info`.
std::string left_out_line(const reader::LiveLeftOut& left_out) {
  if (left_out.is_all) return "recording is off";
  std::vector<std::string> parts;
  if (!left_out.classes.empty()) parts.push_back("off: " + left_out.classes);
  for (const std::string& filter : left_out.own_filters) {
    parts.push_back("filter: " + filter);
  }
  if (!left_out.live_filter.empty()) {
    parts.push_back("live filter: " + left_out.live_filter);
  }
  if (!left_out.record_filter.empty()) {
    parts.push_back("record filter: " + absl::StrJoin(left_out.record_filter, " "));
  }
  return absl::StrJoin(parts, "; ");
}

// Returns the newest mark first: "marks (2): begin of phase 2, 3.20 s ago; ..."
std::string marks_line(const LiveModel& model) {
  if (model.marks().empty()) return "";
  std::vector<std::string> parts;
  for (auto mark = model.marks().rbegin(); mark != model.marks().rend(); ++mark) {
    const int64_t age_ns = std::max<int64_t>(model.now_ns() - mark->time_ns, 0);
    parts.push_back(absl::StrCat(
        mark->text, ", ", reader::duration_text(static_cast<uint64_t>(age_ns)), " ago"));
  }
  return absl::StrCat("marks (", reader::grouped_text(model.mark_count()),
                      "): ", absl::StrJoin(parts, "; "));
}

}  // namespace

void LiveScreen::draw() {
  screen_.clear();
  const int lines = screen_.lines(), columns = screen_.columns();
  if (lines < kLinesMin || columns < kColumnsMin) {
    screen_.put(0, 0, columns,
                absl::StrFormat("%dx%d at least, q leaves", kColumnsMin, kLinesMin));
    screen_.show();
    return;
  }
  draw_head();
  const int head = draw_notices(2);
  const int middle = lines - head - 1;
  if (!shows_stack_) {
    draw_table({head, 0, middle, columns});
  } else if (columns >= kColumnsForStackBeside) {
    const int stack = columns / 3;
    draw_table({head, 0, middle, columns - stack - 1});
    draw_stack({head, columns - stack, middle, stack});
  } else {
    const int stack = middle / 3;
    draw_table({head, 0, middle - stack, columns});
    draw_stack({head + middle - stack, 0, stack, columns});
  }
  draw_keys();
  screen_.show();
}

void LiveScreen::draw_head() {
  const reader::LiveCounters& counters = model_.counters();
  const int columns = screen_.columns();
  const std::string state = is_over_             ? "  the session is over: q leaves"
                            : model_.is_paused() ? "  PAUSED: p goes on"
                                                 : "";
  screen_.put(0, 0, columns, title_, Emphasis::kDim);
  const int state_width = static_cast<int>(state.size());
  screen_.put(0, std::max(columns - state_width, 0), state_width, state, Emphasis::kBold);
  const double used = counters.blocks == 0
                          ? 0
                          : 100 * static_cast<double>(counters.blocks_used) /
                                static_cast<double>(counters.blocks);
  const std::string on_cpu =
      model_.has_cpu() ? absl::StrFormat(", %d on CPU", counters.on_cpu) : "";
  screen_.put(
      1, 0, columns,
      absl::StrFormat("%s records/s  %s in all  %s%s  buffer %.0f %%",
                      rate_text(counters.records_per_second),
                      reader::grouped_text(counters.records),
                      reader::count_text(counters.writers, "writer"), on_cpu, used));
  const std::string lost =
      counters.lost == 0
          ? "  none lost"
          : absl::StrCat("  ! ", reader::grouped_text(counters.lost), " lost, ",
                         rate_text(counters.lost_per_second), "/s");
  const int width = static_cast<int>(lost.size());
  screen_.put(1, std::max(columns - width, 0), width, lost,
              counters.lost == 0 ? Emphasis::kDim : Emphasis::kBold);
}

int LiveScreen::draw_notices(int line) {
  const int columns = screen_.columns();
  // A session that is over records nothing, so nothing is left out.
  const std::string left_out = is_over_ ? "" : left_out_line(model_.left_out());
  for (const auto& [text, emphasis] : {std::pair(left_out, Emphasis::kBold),
                                       std::pair(marks_line(model_), Emphasis::kPlain)}) {
    if (text.empty()) continue;
    screen_.put(line++, 0, columns, text, emphasis);
  }
  return line;
}

// The columns of numbers are the same at all widths; where there is space, there are
// more.
void LiveScreen::draw_table(const Area& area) {
  const bool has_cpu = model_.has_cpu();
  const int cpu = has_cpu ? 8 : 0;  // columns
  const bool has_average = area.columns >= 90 + cpu, has_bars = area.columns >= 62 + cpu;
  const int average = 27 + cpu, bars = has_average ? average + 13 : average;
  const int name = has_bars ? bars + static_cast<int>(kBarsShown) + 2 : average;
  const int name_width = area.columns - name;
  const int64_t window_ns = model_.window_ns();
  const double seconds = static_cast<double>(window_ns) * 1e-9;
  const auto put = [&](int line, int column, int width, std::string_view text,
                       Emphasis emphasis) {
    screen_.put(area.line + line, area.column + column,
                std::min(width, area.columns - column), text, emphasis);
  };
  put(0, 0, area.columns, std::string(static_cast<size_t>(area.columns), ' '),
      Emphasis::kReverse);
  put(0, 0, average,
      absl::StrFormat("%7s%s %7s %9s", "self %", has_cpu ? "  on CPU" : "", "total %",
                      "calls/s"),
      Emphasis::kReverse);
  if (has_average)
    put(0, average, 12, absl::StrFormat("%12s", "average"), Emphasis::kReverse);
  if (has_bars) {
    put(0, bars, static_cast<int>(kBarsShown), absl::StrFormat("last %.1f s", seconds),
        Emphasis::kReverse);
  }
  const bool has_paths = !through_.empty() || table_ == LiveTable::kPaths;
  std::string head = has_paths ? "path" : "function";
  if (!through_.empty()) absl::StrAppend(&head, " through ", through_);
  absl::StrAppend(&head, ", by ", std::string(sort_name(sort_)));
  if (!filter_.empty()) absl::StrAppend(&head, ", with ", filter_);
  put(0, name, name_width, cut_to(head, name_width, screen_.is_utf8()),
      Emphasis::kReverse);

  rows_ = model_.rows(has_paths ? LiveTable::kPaths : LiveTable::kFunctions, sort_,
                      filter_, through_);
  const auto shown = static_cast<size_t>(std::max(area.lines - 1, 0));
  top_ = std::min(top_, rows_.size() > shown ? rows_.size() - shown : 0);
  for (size_t i = 0; i < shown && top_ + i < rows_.size(); ++i) {
    const LiveRow& row = rows_[top_ + i];
    const int line = 1 + static_cast<int>(i);
    const bool is_chosen = row.name == chosen_;
    const Emphasis emphasis = is_chosen ? Emphasis::kBold : Emphasis::kPlain;
    const double calls = seconds <= 0 ? 0 : static_cast<double>(row.sums.calls) / seconds;
    const std::string on_cpu =
        has_cpu ? absl::StrFormat(" %7s", percent_of(row.sums.cpu_ns, window_ns)) : "";
    put(line, 0, average - 1,
        absl::StrFormat("%7s%s %7s %9.0f", percent_of(row.sums.self_ns, window_ns),
                        on_cpu, percent_of(row.sums.total_ns, window_ns), calls),
        emphasis);
    if (is_chosen) put(line, 0, 1, ">", emphasis);
    if (has_average && row.sums.calls != 0) {
      put(line, average, 12,
          absl::StrFormat("%12s",
                          reader::duration_text(row.sums.total_ns / row.sums.calls)),
          emphasis);
    }
    if (has_bars) {
      put(line, bars, static_cast<int>(kBarsShown),
          sparkline(row.history, 0, screen_.is_utf8()), Emphasis::kDim);
    }
    put(line, name, name_width, cut_to(row.name, name_width, screen_.is_utf8()),
        emphasis);
  }
  if (rows_.empty() && shown > 0) {
    put(1, 0, area.columns,
        filter_.empty() && through_.empty() ? "no function was called"
                                            : "nothing like that was called",
        Emphasis::kDim);
  }
}

void LiveScreen::draw_stack(const Area& area) {
  if (area.lines <= 0) return;
  const std::vector<reader::LiveThreadRow>& threads = model_.threads();
  if (threads.empty()) {
    screen_.put(area.line, area.column, area.columns, "no thread lives", Emphasis::kDim);
    return;
  }
  thread_ = thread();
  const reader::LiveThreadRow& thread = threads[thread_];
  std::string head =
      absl::StrFormat("thread %d of %d: %s", thread_ + 1, threads.size(), thread.title);
  head.resize(std::max(head.size(), static_cast<size_t>(area.columns)), ' ');
  screen_.put(area.line, area.column, area.columns, head, Emphasis::kReverse);
  const int end = area.line + area.lines;
  int line = area.line + 1;
  if (line < end) {
    screen_.put(line++, area.column, area.columns, state_line(thread.cpu));
  }
  const std::string cpu = cpu_line(thread.cpu, screen_.is_utf8());
  if (line < end && !cpu.empty()) screen_.put(line++, area.column, area.columns, cpu);
  if (thread.frames.empty() && line < end) {
    screen_.put(line, area.column, area.columns, "in no recorded function",
                Emphasis::kDim);
  }
  constexpr int kTime = 12;
  for (const reader::LiveFrameRow& frame : thread.frames) {
    if (line >= end) break;
    screen_.put(line, area.column, kTime,
                absl::StrFormat("%11s", reader::duration_text(static_cast<uint64_t>(
                                            std::max<int64_t>(frame.for_ns, 0)))),
                Emphasis::kDim);
    const int width = area.columns - kTime;
    screen_.put(line++, area.column + kTime, width,
                cut_to(frame.name, width, screen_.is_utf8()));
  }
}

size_t LiveScreen::thread() const {
  const size_t count = model_.threads().size();
  return count == 0 ? 0 : std::min(thread_, count - 1);
}

void LiveScreen::draw_keys() {
  const std::string keys =
      is_typing_       ? absl::StrCat("show only names with: ", filter_, "_")
      : !note_.empty() ? note_
      : through_.empty()
          ? "q leave  p pause  s sort  v paths  / filter  Enter its paths  "
            "t thread  k stack  S snapshot"
          : "Esc back  q leave  p pause  s sort  / filter  t thread  "
            "k stack  S snapshot";
  screen_.put(screen_.lines() - 1, 0, screen_.columns(), keys,
              is_typing_ || !note_.empty() ? Emphasis::kBold : Emphasis::kDim);
}

}  // namespace arctrace::terminal
