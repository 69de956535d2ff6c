#include "reader/terminal/early_screen.hpp"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "reader/analysis/tree_groups.hpp"
#include "reader/render/session_text.hpp"
#include "reader/report/summary_lines.hpp"
#include "reader/trace/process_identities.hpp"
#include "reader/trace/text_escape.hpp"
#include "reader/ui/tables/cell_table.hpp"
#include "reader/ui/tables/trace_tables.hpp"

namespace arctrace::terminal {

namespace {

using reader::Cell;
using reader::CellRow;
using reader::CellTable;
using reader::RowEmphasis;
using reader::Table;
using reader::TableColumn;
using reader::TextLine;
using reader::TextTable;

std::unique_ptr<Table> facts_table(const reader::Trace& trace,
                                   const reader::BlockTimes& blocks) {
  const reader::TimeRange times = blocks.times();
  const std::string command =
      reader::command_line_text(reader::first_command(trace.definitions()));
  const std::string end = reader::end_text(&trace.session());
  const auto span_ns =
      static_cast<uint64_t>(times.until_ns) - static_cast<uint64_t>(times.from_ns);
  std::vector<TextLine> lines;
  if (!command.empty()) lines.push_back({command, RowEmphasis::kBold});
  lines.push_back(
      {absl::StrCat(
           end, end.empty() ? "" : ", ", reader::cell_text(Cell::time(span_ns)), ", ",
           reader::count_text(reader::join_identities(trace.definitions()).size(),
                              "process", "processes"),
           ", ", reader::bytes_text(blocks.bytes()), " of records"),
       RowEmphasis::kPlain});
  lines.push_back(
      {"Calls, sums and losses are not known before the trace has been read. "
       "t reads a range of time at once, such as 1.5s~1501ms.",
       RowEmphasis::kDim});
  return std::make_unique<TextTable>(std::move(lines));
}

std::unique_ptr<Table> threads_table(const reader::Trace& trace,
                                     const reader::BlockTimes& blocks) {
  const reader::Definitions& definitions = trace.definitions();
  std::vector<CellRow> rows;
  for (reader::ThreadIndex i = 0; i < definitions.threads().size(); ++i) {
    const reader::Thread& thread = definitions.threads()[i];
    if (thread.of_kernel()) continue;
    const uint64_t bytes = blocks.bytes_of(i);
    const int64_t end_ns = definitions.life_end_ns(i);
    CellRow row;
    row.cells = {
        Cell{Cell::Kind::kText, bytes, 0, bytes == 0 ? "-" : reader::bytes_text(bytes)},
        Cell::moment(definitions.begin_ns(i)),
        end_ns == INT64_MAX ? Cell::none() : Cell::moment(end_ns)};
    row.name = absl::StrCat(reader::escaped(reader::thread_label(definitions, i)), " ",
                            definitions.pid_of(i), "/", thread.tid);
    rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const CellRow& a, const CellRow& b) {
    return a.cells[0].number > b.cells[0].number;
  });
  return std::make_unique<CellTable>(
      "Threads, by what they wrote",
      std::vector<TableColumn>{
          {"Records", 12, 0, false}, {"Start", 14, 1, false}, {"End", 14, 2, false}},
      std::move(rows), std::nullopt);
}

reader::TableList early_tables(const reader::Trace& trace,
                               const reader::BlockTimes& blocks) {
  reader::TableList tables;
  tables.push_back(facts_table(trace, blocks));
  tables.push_back(threads_table(trace, blocks));
  return tables;
}

}  // namespace

EarlyScreen::EarlyScreen(Screen& screen, const reader::Trace& trace,
                         const reader::BlockTimes& blocks)
    : screen_(screen), page_("Reading", early_tables(trace, blocks)) {}

void EarlyScreen::draw() {
  reader::TextStyle style;
  style.width = static_cast<size_t>(std::max(screen_.columns(), 1));
  style.utf8 = screen_.is_utf8();
  const auto height = static_cast<size_t>(std::max(screen_.lines() - 1, 1));
  screen_.clear();
  int at = 0;
  for (const reader::PageLine& line : page_.lines(height, style)) {
    const Emphasis emphasis = line.is_head                         ? Emphasis::kReverse
                              : line.is_chosen                     ? Emphasis::kBold
                              : line.emphasis == RowEmphasis::kDim ? Emphasis::kDim
                                                                   : Emphasis::kPlain;
    screen_.put(at++, 0, screen_.columns(), line.text, emphasis);
  }
}

bool EarlyScreen::handle(int key) {
  if (key == Screen::kKeyDown || key == 'j') {
    page_.move(1);
  } else if (key == Screen::kKeyUp || key == 'k') {
    page_.move(-1);
  } else if (key == Screen::kKeyResize) {
    screen_.redraw();
  } else {
    return false;
  }
  return true;
}

void draw_last_line(Screen& screen, const std::string& text) {
  const int line = screen.lines() - 1;
  screen.put(line, 0, screen.columns(),
             std::string(static_cast<size_t>(std::max(screen.columns(), 1)), ' '));
  screen.put(line, 0, screen.columns(), text, Emphasis::kBold);
}

void draw_progress(Screen& screen, uint64_t records, double share, double seconds,
                   const char* keys) {
  std::string text = "reading the trace: ";
  if (share > 0) {
    absl::StrAppendFormat(&text, "%.0f %%, %.0f s left, ", 100 * share,
                          seconds * (1 - share) / share);
  }
  absl::StrAppendFormat(&text, "%.1f million records  (%s)",
                        static_cast<double>(records) * 1e-6, keys);
  draw_last_line(screen, text);
}

namespace {

constexpr size_t kTypedMax = 60;

}  // namespace

void RangePrompt::open() {
  is_open_ = true;
  typed_.clear();
  problem_.clear();
}

std::optional<reader::TimeRange> RangePrompt::handle(int key) {
  if (key == Screen::kKeyEscape) is_open_ = false;
  if (key == Screen::kKeyBackspace && !typed_.empty()) typed_.pop_back();
  if (key >= ' ' && key < 0x7F && typed_.size() < kTypedMax) {
    typed_ += static_cast<char>(key);
    problem_.clear();
  }
  if (key != Screen::kKeyEnter) return std::nullopt;
  const absl::StatusOr<reader::TimeRange> range =
      typed_.empty() ? reader::TimeRange{} : parse_(typed_);
  if (!range.ok()) {
    problem_ = reader::escaped(std::string(range.status().message()));
    return std::nullopt;
  }
  is_open_ = false;
  return *range;
}

void RangePrompt::draw(Screen& screen) const {
  draw_last_line(screen, absl::StrCat("time range, START~STOP: ", typed_, "_",
                                      problem_.empty() ? "" : "  ", problem_));
}

}  // namespace arctrace::terminal
