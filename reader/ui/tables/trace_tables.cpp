#include "reader/ui/tables/trace_tables.hpp"

#include <absl/container/btree_map.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "reader/analysis/process_tree.hpp"
#include "reader/render/labels.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/render/session_text.hpp"
#include "reader/report/critical_path_view.hpp"
#include "reader/report/lock_text.hpp"
#include "reader/report/summary_lines.hpp"
#include "reader/trace/text_escape.hpp"
#include "reader/ui/tables/cell_table.hpp"
#include "reader/ui/tables/sums_table.hpp"
#include "reader/ui/tables/tree_table.hpp"

namespace arctrace::reader {

TraceCalls::TraceCalls(const Definitions& definitions, const Session* session)
    : session_(session),
      has_wake_ups_(definitions.has_dispatches() && session != nullptr &&
                    !session->has_perf_records),
      times_(definitions, Grouping::kAll),
      locks_(definitions),
      ends_([this, session](FunctionId function) {
        return signal_of(replay_->functions()[function], session);
      }) {}

void TraceCalls::begin(const Replay& replay) {
  replay_ = &replay;
  locks_.set_functions(replay.functions());
  if (has_wake_ups_) loops_.begin(replay, session_);
}

// ---- The tables of the views, other than the summary ------------------------------

namespace {

uint64_t calls_below(const CallTree& tree, NodeIndex root) {
  uint64_t calls = 0;
  for (NodeIndex node = tree.next_in_preorder(root, root); node != kNoNode;
       node = tree.next_in_preorder(node, root)) {
    calls += tree[node].calls;
  }
  return calls;
}

// The sums of the threads of a process, or of one thread.
struct ThreadSums {
  int64_t start_ns = INT64_MAX, stop_ns = INT64_MIN;
  CpuTime cpu;
  uint64_t calls = 0;
};

std::vector<TableColumn> thread_columns(KnownTimes known) {
  std::vector<TableColumn> columns = {{"Wall", 11, 0, true}};
  if (known != KnownTimes::kNone) {
    columns.push_back({"On CPU", 11, 1, true});
    columns.push_back({known == KnownTimes::kReady ? "Blocked" : "Off CPU", 11, 3, true});
  }
  if (known == KnownTimes::kReady) columns.push_back({"No CPU", 11, 6, true});
  if (known != KnownTimes::kNone) columns.push_back({"Switches", 9, 7, true});
  columns.push_back({"Calls", 11, 2, true});
  columns.push_back({"Start", 14, 5, true});
  columns.push_back({"Exit", 10, 4, true});
  return columns;
}

std::vector<Cell> thread_cells(const ThreadSums& sums, KnownTimes known, Cell exit) {
  std::vector<Cell> cells = {Cell::time(static_cast<uint64_t>(sums.stop_ns) -
                                        static_cast<uint64_t>(sums.start_ns))};
  if (known != KnownTimes::kNone) {
    cells.push_back(Cell::time(sums.cpu.cpu_ns));
    cells.push_back(Cell::time(known == KnownTimes::kReady ? sums.cpu.blocked_ns()
                                                           : sums.cpu.off_ns));
  }
  if (known == KnownTimes::kReady) cells.push_back(Cell::time(sums.cpu.ready_ns));
  if (known != KnownTimes::kNone) cells.push_back(Cell::count(sums.cpu.switches));
  cells.push_back(Cell::count(sums.calls));
  cells.push_back(Cell::moment(sums.start_ns));
  cells.push_back(std::move(exit));
  return cells;
}

TableList list_of(std::unique_ptr<Table> table) {
  TableList tables;
  tables.push_back(std::move(table));
  return tables;
}

}  // namespace

TableList nothing_to_show() {
  return list_of(std::make_unique<TextTable>(std::vector<TextLine>{
      {"Nothing to show: no thread has records, or none that pass the filters.",
       RowEmphasis::kDim}}));
}

TraceTables::TraceTables(const FinishedPass& facts)
    : facts_(facts),
      labels_(facts.replay, false),
      groups_(facts.replay, Grouping::kAll),
      serving_(facts.calls.loops().find()),
      busy_(facts.replay, serving_, groups_.groups().front()) {}

TableList TraceTables::functions() {
  if (is_empty()) return nothing_to_show();
  const Replay& replay = facts_.replay;
  return list_of(std::make_unique<FunctionsTable>(
      "Function",
      function_totals(*all().tree, replay.functions(), all().root, SortKey::kEntry),
      SumsOfAll{all(), facts_.calls.times(), replay.known_times()}, labels_,
      Column::kTotal));
}

TableList TraceTables::tree(Grouping grouping) {
  if (is_empty()) return nothing_to_show();
  return list_of(std::make_unique<TreeTable>(facts_.replay, labels_, grouping));
}

TableList TraceTables::threads() {
  if (is_empty()) return nothing_to_show();
  const Replay& replay = facts_.replay;
  const Definitions& definitions = replay.definitions();
  const KnownTimes known = replay.known_times();
  absl::btree_map<ProcessIndex, std::pair<ThreadSums, CellRow>> processes;
  const TreeGroups threads(replay, Grouping::kThread);
  for (size_t i = 0; i < replay.threads().size(); ++i) {
    const ThreadTree& thread = replay.threads()[i];
    auto& [sums, row] = processes[definitions.threads()[thread.thread].process];
    ThreadSums own{thread.start_ns, thread.stop_ns, replay.tree().cpu_total(thread.root),
                   calls_below(replay.tree(), thread.root)};
    sums.start_ns = std::min(sums.start_ns, own.start_ns);
    sums.stop_ns = std::max(sums.stop_ns, own.stop_ns);
    sums.cpu += own.cpu;
    sums.calls += own.calls;
    CellRow& below = row.below.emplace_back();
    below.cells = thread_cells(own, known, Cell::none());
    below.name = thread_title(definitions, thread.thread);
    NodeMarks marks = replay.tree().marks(thread.root);
    marks.end_within_ns = 0;  // the title says it
    marks.unknown_ns = own.cpu.unknown_ns;
    below.notes = end_text(threads.groups()[i]) + marks_text(marks);
  }
  std::vector<CellRow> rows;
  for (auto& [index, process] : processes) {
    auto& [sums, row] = process;
    const Process* facts = definitions.process(index);
    Cell exit =
        facts == nullptr
            ? Cell::none()
            : Cell::word(process_exit_text(*facts, facts_.replay.wait_status(index)));
    row.cells = thread_cells(sums, known, std::move(exit));
    row.name = absl::StrCat(escaped(process_label(definitions, index)), " ",
                            facts == nullptr ? 0 : facts->pid);
    if (facts != nullptr && !facts->arguments.empty()) {
      absl::StrAppend(&row.name, ": ", command_line_text(facts->arguments));
    }
    row.emphasis = RowEmphasis::kBold;
    rows.push_back(std::move(row));
  }
  return list_of(std::make_unique<CellTable>("Process/thread", thread_columns(known),
                                             std::move(rows), TableSort{0, false}));
}

TableList TraceTables::locks() {
  if (is_empty()) return nothing_to_show();
  const Definitions& definitions = facts_.replay.definitions();
  const LockTable& locks = facts_.calls.locks();
  LockNames names(definitions);
  TableList tables;
  std::vector<TextLine> deadlocks;
  for (const std::vector<LockWaiter>& ring : locks.deadlocks()) {
    deadlocks.push_back({kDeadlockHead, RowEmphasis::kTrouble});
    for (const LockWaiter& waiter : ring) {
      deadlocks.push_back({names.waiter_text(waiter), RowEmphasis::kPlain});
    }
  }
  if (!deadlocks.empty()) tables.push_back(std::make_unique<TextTable>(deadlocks));
  std::vector<CellRow> rows;
  for (const auto& [lock, sums] : locks.locks()) {
    CellRow& row = rows.emplace_back();
    row.cells = {sums.waits == 0 ? Cell::none() : Cell::time(sums.waited_ns),
                 Cell::count_or_none(sums.waits),
                 sums.holds == 0 ? Cell::none() : Cell::time(sums.held_ns),
                 Cell::count_or_none(sums.holds),
                 Cell::time_or_none(sums.longest_wait.duration_ns),
                 Cell::time_or_none(sums.longest_hold.duration_ns)};
    row.name = absl::StrCat(names.title(lock, sums, labels_), open_locks_text(sums),
                            lock_owner(lock, definitions));
    row.is_folded = true;
    for (const LockLine& line : lock_lines(sums, definitions, labels_)) {
      CellRow& below = row.below.emplace_back();
      below.name = absl::StrCat(std::string(2 * line.level, ' '), line.before, line.path);
      below.emphasis = RowEmphasis::kDim;
    }
  }
  if (!rows.empty()) {
    tables.push_back(std::make_unique<CellTable>(
        "Lock",
        std::vector<TableColumn>{{"Waited", 11, 0, true},
                                 {"Waits", 9, 2, true},
                                 {"Held", 11, 1, true},
                                 {"Holds", 9, 3, true},
                                 {"Longest wait", 13, 4, true},
                                 {"Longest hold", 13, 5, true}},
        std::move(rows), TableSort{0, false}));
  }
  std::vector<TextLine> notes;
  for (std::string& note : lock_notes(locks)) {
    notes.push_back({std::move(note), RowEmphasis::kDim});
  }
  tables.push_back(std::make_unique<TextTable>(std::move(notes)));
  return tables;
}

TableList TraceTables::critical_path() {
  if (is_empty()) return nothing_to_show();
  ScheduleLog* log = facts_.calls.log();
  if (log == nullptr) {
    return list_of(std::make_unique<TextTable>(std::vector<TextLine>{
        {"The trace does not know what woke its threads: record with --kernel=bpf.",
         RowEmphasis::kDim}}));
  }
  const std::optional<PathEnd> end = whole_stretch(*log, facts_.replay);
  if (!end.has_value()) return nothing_to_show();
  const CriticalPath path = arctrace::reader::critical_path(*log, facts_.replay, *end);
  TableList tables = list_of(std::make_unique<TextTable>(std::vector<TextLine>{
      {absl::StrCat(duration_text(path.wall_ns()), " to the end of ",
                    thread_title(facts_.replay.definitions(), path.end.thread), ": ",
                    critical_states_text(path)),
       RowEmphasis::kPlain}}));
  if (!log->status().ok()) {
    tables.push_back(std::make_unique<TextTable>(std::vector<TextLine>{
        {escaped(std::string(log->status().message())), RowEmphasis::kTrouble}}));
  }
  std::vector<CellRow> rows;
  for (const CriticalPathRow& from : critical_path_rows(path, facts_.replay, labels_)) {
    CellRow& row = rows.emplace_back();
    row.cells = {Cell::time(from.time_ns), Cell::share(from.time_ns, path.wall_ns()),
                 Cell::word(std::string(path_state_name(from.state)))};
    row.name = from.path.empty() ? from.name : absl::StrCat(from.name, "  ", from.path);
  }
  tables.push_back(std::make_unique<CellTable>(
      "Of what, and where",
      std::vector<TableColumn>{
          {"Time", 11, 0, true}, {"%", 8, 2, false}, {"State", 11, 1, true}},
      std::move(rows), TableSort{0, false}));
  return tables;
}

std::string TraceTables::status(bool& has_trouble) const {
  has_trouble = false;
  std::string text;
  const Session* session = facts_.session;
  if (session != nullptr && !session->finished) {
    has_trouble = true;
    text = session->raw ? "a session's buffer, as it was when it was read; "
                        : "the recording was cut off; ";
  }
  if (facts_.summary != nullptr) {
    Summary sums = *facts_.summary;
    sums.findings += facts_.replay.finding_count();
    has_trouble |= sums.lost != 0 || sums.overwritten != 0 || sums.torn != 0;
    text += summary_line(sums);
  }
  const std::string frames = frame_totals_text(facts_.replay.totals());
  if (!frames.empty()) absl::StrAppend(&text, "; ", frames);
  return text;
}

}  // namespace arctrace::reader
