#include "reader/terminal/live_screen.hpp"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "reader/render/text_style.hpp"

namespace arctrace::terminal {
namespace {

using reader::LiveRow;
using reader::LiveSort;
using reader::LiveTable;

constexpr int kLinesMin = 8, kColumnsMin = 40;
constexpr size_t kBarsShown = 16;

// The newest values as bars, relative to the largest of them.
std::string sparkline(const std::vector<uint64_t>& values, bool is_utf8) {
  constexpr std::array<std::string_view, 9> kBlocks = {" ", "▁", "▂", "▃", "▄",
                                                       "▅", "▆", "▇", "█"};
  constexpr std::array<std::string_view, 9> kAscii = {" ", ".", ":", "-", "=",
                                                      "+", "*", "#", "@"};
  const auto& bars = is_utf8 ? kBlocks : kAscii;
  const size_t count = std::min(values.size(), kBarsShown);
  const uint64_t most =
      count == 0 ? 0
                 : *std::max_element(values.end() - static_cast<std::ptrdiff_t>(count),
                                     values.end());
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

std::string_view sort_name(LiveSort sort) {
  constexpr std::array<std::string_view, 4> kNames = {"self", "total", "calls", "name"};
  return kNames[static_cast<size_t>(sort)];
}

}  // namespace

void LiveScreen::draw() {
  screen_.clear();
  const int lines = screen_.lines();
  if (lines < kLinesMin || screen_.columns() < kColumnsMin) {
    screen_.put(0, 0, screen_.columns(),
                absl::StrFormat("%dx%d at least, q leaves", kColumnsMin, kLinesMin));
    screen_.show();
    return;
  }
  draw_head();
  const int stack_lines = shows_stack_ ? (lines - 4) / 3 : 0;
  draw_rows(3, lines - 4 - stack_lines);
  draw_stack(lines - 1 - stack_lines, stack_lines);
  draw_keys();
  screen_.show();
}

void LiveScreen::draw_head() {
  const reader::LiveCounters& counters = model_.counters();
  const int columns = screen_.columns();
  screen_.put(0, 0, columns, absl::StrCat(title_, model_.is_paused() ? "  PAUSED" : ""),
              Look::kBold);
  const double used = counters.blocks == 0
                          ? 0
                          : 100 * static_cast<double>(counters.blocks_used) /
                                static_cast<double>(counters.blocks);
  screen_.put(1, 0, columns,
              absl::StrFormat("%.0f records/s  %d in all  %d writers  buffer %.0f %%",
                              counters.records_per_second, counters.records,
                              counters.writers, used));
  const std::string lost =
      counters.lost == 0
          ? "none lost"
          : absl::StrFormat("! %d lost, %.0f/s", counters.lost, counters.lost_per_second);
  const int width = static_cast<int>(lost.size());
  if (columns > 60 + width) {
    screen_.put(1, columns - width, width, lost,
                counters.lost == 0 ? Look::kDim : Look::kBold);
  } else if (counters.lost != 0) {
    screen_.put(0, columns - width, width, lost, Look::kBold);
  }
  const std::string shown = table_ == LiveTable::kFunctions ? "function" : "path";
  screen_.put(
      2, 0, columns,
      absl::StrFormat(
          "%7s %7s %9s  %-16s  %s", "self %", "total %", "calls/s",
          absl::StrFormat("last %.1f s", static_cast<double>(model_.window_ns()) * 1e-9),
          absl::StrCat(shown, ", by ", std::string(sort_name(sort_)),
                       filter_.empty() ? "" : ", with ", filter_)),
      Look::kReverse);
}

void LiveScreen::draw_rows(int first, int count) {
  const std::vector<LiveRow> rows = model_.rows(table_, sort_, filter_);
  const auto shown = static_cast<size_t>(std::max(count, 0));
  top_ = std::min(top_, rows.size() > shown ? rows.size() - shown : 0);
  const double seconds = static_cast<double>(model_.window_ns()) * 1e-9;
  constexpr int kName = 45;
  const int name_width = screen_.columns() - kName;
  for (size_t i = 0; i < shown && top_ + i < rows.size(); ++i) {
    const LiveRow& row = rows[top_ + i];
    const int line = first + static_cast<int>(i);
    const double calls = seconds <= 0 ? 0 : static_cast<double>(row.sums.calls) / seconds;
    screen_.put(
        line, 0, kName,
        absl::StrFormat("%7s %7s %9.0f", percent_of(row.sums.self_ns, model_.window_ns()),
                        percent_of(row.sums.total_ns, model_.window_ns()), calls));
    if (name_width < 16) {
      screen_.put(line, 27, screen_.columns() - 27, row.name);
      continue;
    }
    screen_.put(line, 27, static_cast<int>(kBarsShown),
                sparkline(row.history, screen_.is_utf8()), Look::kDim);
    reader::TextStyle style;
    style.utf8 = screen_.is_utf8();
    screen_.put(line, kName, name_width,
                reader::cut_name(row.name, static_cast<size_t>(name_width), style));
  }
}

void LiveScreen::draw_stack(int first, int count) {
  if (count <= 0) return;
  const std::vector<reader::LiveThreadRow>& threads = model_.threads();
  if (threads.empty()) {
    screen_.put(first, 0, screen_.columns(), "no thread lives", Look::kDim);
    return;
  }
  thread_ = std::min(thread_, threads.size() - 1);
  const reader::LiveThreadRow& thread = threads[thread_];
  screen_.put(
      first, 0, screen_.columns(),
      absl::StrFormat("thread %d of %d: %s", thread_ + 1, threads.size(), thread.title),
      Look::kReverse);
  for (int i = 1; i < count && static_cast<size_t>(i) <= thread.frames.size(); ++i) {
    const reader::LiveFrameRow& frame = thread.frames[static_cast<size_t>(i) - 1];
    screen_.put(first + i, 0, 12,
                absl::StrFormat("%11s", reader::duration_text(static_cast<uint64_t>(
                                            std::max<int64_t>(frame.for_ns, 0)))),
                Look::kDim);
    screen_.put(first + i, 13, screen_.columns() - 13, frame.name);
  }
}

void LiveScreen::draw_keys() {
  const std::string keys =
      is_typing_ ? absl::StrCat("show only names with: ", filter_, "_")
      : note_.empty()
          ? "q leave  p pause  s sort  v paths  / filter  t thread  k stack  S snapshot"
          : note_;
  screen_.put(screen_.lines() - 1, 0, screen_.columns(), keys,
              is_typing_ || !note_.empty() ? Look::kBold : Look::kDim);
}

bool LiveScreen::handle_filter(int key) {
  if (key == Screen::kKeyEnter) {
    is_typing_ = false;
  } else if (key == Screen::kKeyEscape) {
    is_typing_ = false;
    filter_.clear();
  } else if (key == Screen::kKeyBackspace) {
    if (!filter_.empty()) filter_.pop_back();
  } else if (key >= ' ' && key < 0x7F) {
    filter_ += static_cast<char>(key);
  }
  return true;
}

bool LiveScreen::handle(int key) {
  if (key == Screen::kKeyNone) return true;
  if (is_typing_) return handle_filter(key);
  note_.clear();
  const int page = std::max(screen_.lines() / 2, 1);
  const auto scroll = [&](int lines) {
    const auto top = static_cast<int64_t>(top_) + lines;
    top_ = static_cast<size_t>(std::max<int64_t>(top, 0));
  };
  switch (key) {
    case 'q':
      return false;
    case 'p':
      model_.set_paused(!model_.is_paused());
      break;
    case 's':
      sort_ = static_cast<LiveSort>((static_cast<int>(sort_) + 1) % 4);
      break;
    case 'v':
      table_ =
          table_ == LiveTable::kFunctions ? LiveTable::kPaths : LiveTable::kFunctions;
      top_ = 0;
      break;
    case '/':
      is_typing_ = true;
      filter_.clear();
      break;
    case 't':
      thread_ = model_.threads().empty() ? 0 : (thread_ + 1) % model_.threads().size();
      break;
    case 'k':
      shows_stack_ = !shows_stack_;
      break;
    case 'S':
      note_ = snapshot_();
      screen_.redraw();
      break;
    case Screen::kKeyUp:
      scroll(-1);
      break;
    case Screen::kKeyDown:
      scroll(1);
      break;
    case Screen::kKeyPageUp:
      scroll(-page);
      break;
    case Screen::kKeyPageDown:
      scroll(page);
      break;
    case Screen::kKeyResize:
      screen_.redraw();
      break;
    default:
      break;
  }
  return true;
}

}  // namespace arctrace::terminal
