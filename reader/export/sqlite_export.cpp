// --to=sqlite: a database of calls, paths, threads, scheduling and events
// (docs/guide/sqlite.md).
#include <absl/container/flat_hash_map.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <arctrace/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reader/analysis/recorded_state.hpp"
#include "reader/export/export_formats.hpp"
#include "reader/export/export_names.hpp"
#include "reader/export/sqlite_file.hpp"
#include "reader/export/whole_calls.hpp"
#include "reader/render/labels.hpp"
#include "reader/render/left_out.hpp"
#include "reader/streams/json_writer.hpp"
#include "reader/trace/format_names.hpp"
#include "src/base/untrusted_bytes.hpp"

namespace arctrace::reader {
namespace {

// ---- The tables and views, as docs/guide/sqlite.md describes them ----------------

// For `PRAGMA user_version`: raised when a table or column changes its meaning or goes.
constexpr const char* kSqliteTables = R"(
PRAGMA user_version=2;
PRAGMA application_id=1095914324;
CREATE TABLE trace(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE processes(id INTEGER PRIMARY KEY, pid INTEGER, ppid INTEGER,
  parent_id INTEGER, origin TEXT, name TEXT, executable TEXT, command TEXT,
  start_ns INTEGER, end_ns INTEGER, end_how TEXT, status INTEGER);
CREATE TABLE threads(id INTEGER PRIMARY KEY, process_id INTEGER, tid INTEGER, name TEXT,
  start_ns INTEGER, stop_ns INTEGER, cpu_ns INTEGER, off_cpu_ns INTEGER,
  not_known_ns INTEGER);
CREATE TABLE functions(id INTEGER PRIMARY KEY, name TEXT, module TEXT);
CREATE TABLE paths(id INTEGER PRIMARY KEY, parent_id INTEGER, function_id INTEGER,
  depth INTEGER);
CREATE TABLE frames(id INTEGER PRIMARY KEY, thread_id INTEGER, path_id INTEGER,
  function_id INTEGER, start_ns INTEGER, duration_ns INTEGER, self_ns INTEGER,
  off_cpu_ns INTEGER, ready_ns INTEGER, not_known_ns INTEGER, coroutine INTEGER,
  args TEXT, result TEXT, flags TEXT, is_call INTEGER);
CREATE VIEW calls AS SELECT id, thread_id, path_id, function_id, start_ns, duration_ns,
  self_ns, off_cpu_ns, ready_ns, not_known_ns, coroutine, args, result, flags
  FROM frames WHERE is_call;
CREATE TABLE scheduling(thread_id INTEGER, start_ns INTEGER, duration_ns INTEGER,
  state TEXT, task_state INTEGER, waker_id INTEGER, waker_interrupt INTEGER);
CREATE TABLE events(thread_id INTEGER, time_ns INTEGER, type TEXT, name TEXT,
  fields TEXT);
CREATE TABLE losses(thread_id INTEGER, time_ns INTEGER, cause TEXT, records INTEGER);
CREATE TABLE gaps(thread_id INTEGER, start_ns INTEGER, duration_ns INTEGER, reason TEXT,
  records INTEGER);
CREATE TABLE left_out(function_id INTEGER, start_ns INTEGER, duration_ns INTEGER,
  reason TEXT);
)";

// These statements run after the rows, which go in faster without indexes.
constexpr const char* kSqliteViews = R"(
CREATE INDEX frames_by_function ON frames(function_id, duration_ns);
CREATE INDEX frames_by_thread ON frames(thread_id, start_ns);
CREATE INDEX scheduling_by_thread ON scheduling(thread_id, start_ns);
CREATE INDEX events_by_name ON events(name, time_ns);
CREATE VIEW named_calls AS SELECT calls.id AS id, pid, tid, threads.name AS thread,
  functions.name AS name, module, calls.start_ns AS start_ns, duration_ns, self_ns,
  calls.off_cpu_ns AS off_cpu_ns, calls.not_known_ns AS not_known_ns, depth, coroutine, args, result, flags, path_id
  FROM calls JOIN functions ON functions.id = calls.function_id
  JOIN paths ON paths.id = path_id JOIN threads ON threads.id = thread_id
  LEFT JOIN processes ON processes.id = process_id;
CREATE VIEW function_sums AS SELECT functions.name AS name, module,
  sum(is_call) AS calls, sum(self_ns) AS self_ns, sum(duration_ns) AS duration_ns,
  avg(CASE WHEN is_call THEN duration_ns END) AS avg_ns,
  min(CASE WHEN is_call THEN duration_ns END) AS min_ns,
  max(CASE WHEN is_call THEN duration_ns END) AS max_ns,
  sum(off_cpu_ns) AS off_cpu_ns, sum(not_known_ns) AS not_known_ns,
  EXISTS (SELECT 1 FROM left_out WHERE left_out.function_id = functions.id) AS incomplete
  FROM frames JOIN functions ON functions.id = function_id GROUP BY function_id;
CREATE VIEW path_names AS WITH RECURSIVE named(id, text) AS (
  SELECT paths.id, functions.name FROM paths
    JOIN functions ON functions.id = function_id WHERE parent_id IS NULL
  UNION ALL SELECT paths.id, named.text || ' > ' || functions.name FROM named
    JOIN paths ON parent_id = named.id JOIN functions ON functions.id = function_id)
  SELECT id, text FROM named;
CREATE VIEW state_sums AS SELECT pid, tid, threads.name AS thread, state,
  count(*) AS times, sum(duration_ns) AS duration_ns
  FROM scheduling JOIN threads ON threads.id = thread_id
  LEFT JOIN processes ON processes.id = process_id GROUP BY thread_id, state;
CREATE INDEX paths_by_parent ON paths(parent_id);
)";

// "{...}" for members; empty if there are none.
std::string json_object(const std::string& members) {
  return members.empty() ? std::string() : absl::StrCat("{", members, "}");
}

// Rows go in when they are known. Identities of processes, threads and functions are the
// reader's indices, counted from 1; 0 stands for none, and is stored as NULL.
class SqliteExport : public CallExporter {
 public:
  using CallExporter::CallExporter;

  void begin(Replay& replay, const WriteText& write) override {
    replay_ = &replay;
    write_ = &write;
    whole_names_.emplace(replay.functions()).set_full(true);
    names_.emplace(replay.definitions(), *whole_names_);
    file_.create();
    file_.execute(kSqliteTables);
    paths_rows_.prepare(file_, "paths", 4);
    frames_rows_.prepare(file_, "frames", 15);
    states_rows_.prepare(file_, "scheduling", 7);
    events_rows_.prepare(file_, "events", 5);
    losses_rows_.prepare(file_, "losses", 4);
    gaps_rows_.prepare(file_, "gaps", 5);
  }

  void gap(const Gap& gap) override {
    gaps_rows_.add({thread_id(gap.thread), gap.from_known ? gap.from_ns : gap.to_ns,
                    gap.from_known ? SqlValue(gap.to_ns - gap.from_ns) : SqlValue(),
                    gap_reason_text(gap), gap.records});
  }

  absl::Status finish() override {
    finish_calls();
    add_functions();
    add_left_out();
    add_processes();
    add_threads();
    add_trace();
    file_.execute(kSqliteViews);
    file_.finish(*write_);
    return file_.status();
  }

 private:
  std::string describe(const Record& record) override {
    return content_members(settings().describe, record);
  }

  void call_began(const FrameInfo& frame) override {
    std::vector<uint32_t>& stack = stacks_[{frame.thread, frame.coroutine}];
    stack.resize(frame.depth - 1);
    stack.push_back(path(stack.empty() ? 0 : stack.back(), frame));
  }

  void call(const WholeCall& call) override {
    const FrameInfo& frame = call.frame;
    const std::vector<uint32_t>& stack = stacks_[{frame.thread, frame.coroutine}];
    const uint32_t path_id = call.is_adopted || stack.size() < frame.depth
                                 ? path(0, frame)
                                 : stack[frame.depth - 1];
    const bool ended = call.has_ended;
    const bool has_cpu = replay_->has_dispatches();
    const bool has_ready = has_cpu && replay_->known_times() == KnownTimes::kReady;
    const std::string flags = flags_text(frame.flags);
    const std::string args = json_object(call.args), result = json_object(call.retval);
    frames_rows_.add(
        {++last_frame_, thread_id(frame.thread), path_id, function_id(frame.function),
         frame.start_ns, ended ? SqlValue(frame.stop_ns - frame.start_ns) : SqlValue(),
         frame.self_ns, has_cpu ? SqlValue(frame.cpu.off_ns) : SqlValue(),
         has_ready ? SqlValue(frame.cpu.ready_ns) : SqlValue(),
         has_cpu ? SqlValue(frame.cpu.unknown_ns) : SqlValue(), frame.coroutine,
         SqlValue::text_or_null(args), SqlValue::text_or_null(result),
         SqlValue::text_or_null(flags.empty() ? std::string_view()
                                              : std::string_view(flags).substr(1)),
         is_call(frame.flags)});
  }

  void point(const PointInfo& point) override {
    if (point.kind != PointInfo::Kind::kRecord) {
      events_rows_.add(
          {thread_id(point.thread), point.time_ns,
           point.kind == PointInfo::Kind::kOrphan ? kOrphanExitName : kContradictionName,
           SqlValue(), SqlValue()});
      return;
    }
    if (point.record->type == ARCTRACE_TYPE_LOST) {
      const auto lost = load_part_untrusted<arctrace_lost_body>(point.record->body);
      losses_rows_.add({thread_id(point.thread), point.time_ns,
                        loss_cause_text(lost.cause), lost.count});
      return;
    }
    std::string title;
    const std::string fields = json_object(json_members([&](JsonWriter& json) {
      Untitled<JsonFields> untitled(json);
      settings().describe(*point.record, untitled);
      title = untitled.title_text();
    }));
    if (title.empty()) title = record_type_text(point.record->type);
    events_rows_.add({thread_id(point.thread), point.time_ns,
                      point_type_text(point.record->type), safe_name(title),
                      SqlValue::text_or_null(fields)});
  }

  void state_ended(const StateInfo& state) override {
    const bool has_task_state =
        state.state == RunState::kBlocked && state.task_state != ARCTRACE_SWITCH_UNKNOWN;
    const bool has_waker = state.waker.thread != kNoIndex;
    states_rows_.add({thread_id(state.thread), state.start_ns,
                      state.stop_ns - state.start_ns, run_state_text(state),
                      has_task_state ? SqlValue(state.task_state) : SqlValue(),
                      thread_id(state.waker.thread),
                      has_waker ? SqlValue(state.waker.interrupt) : SqlValue()});
  }

  static SqlValue thread_id(ThreadIndex thread) {
    return thread == kNoIndex ? SqlValue() : SqlValue(uint64_t{thread} + 1);
  }
  static SqlValue process_id(ProcessIndex process) {
    return process == kNoIndex ? SqlValue() : SqlValue(uint64_t{process} + 1);
  }
  static uint64_t function_id(FunctionId function) { return uint64_t{function} + 1; }
  // INT64_MIN and INT64_MAX mean that the time is not known.
  static SqlValue known_time(int64_t time_ns) {
    return time_ns == INT64_MIN || time_ns == INT64_MAX ? SqlValue() : SqlValue(time_ns);
  }

  // Returns the path of `parent` (0: none) and the frame's function after it; adds it if
  // it is new.
  uint32_t path(uint32_t parent, const FrameInfo& frame) {
    const auto [found, added] = paths_.try_emplace(
        {parent, frame.function}, static_cast<uint32_t>(paths_.size() + 1));
    if (added) {
      paths_rows_.add({found->second, parent == 0 ? SqlValue() : SqlValue(parent),
                       function_id(frame.function), frame.depth});
    }
    return found->second;
  }

  void add_functions() {
    SqlInsert rows;
    rows.prepare(file_, "functions", 3);
    const Functions& functions = replay_->functions();
    for (FunctionId i = kUnknownFunction; i < functions.size(); ++i) {
      rows.add({function_id(i), names_->function(i), safe_name(functions[i].module)});
    }
  }

  void add_left_out() {
    SqlInsert rows;
    rows.prepare(file_, "left_out", 4);
    RecordedStates(*replay_).for_each([&](FunctionId function, const LeftOut& what) {
      const bool has_ends = what.from_ns.has_value() && what.to_ns.has_value();
      rows.add({function == kRootFunction ? SqlValue() : SqlValue(function_id(function)),
                what.from_ns,
                has_ends ? SqlValue(*what.to_ns - *what.from_ns) : SqlValue(),
                safe_name(what.by)});
    });
  }

  void add_processes() {
    SqlInsert rows;
    rows.prepare(file_, "processes", 12);
    const Definitions& definitions = replay_->definitions();
    for (ProcessIndex i = 0; i < definitions.processes().size(); ++i) {
      const Process& process = definitions.processes()[i];
      const bool has_end = process.end_how != ARCTRACE_END_NONE;
      const std::string command = absl::StrJoin(process.arguments, " ");
      const std::string how = has_end ? process_end_text(process.end_how) : "";
      // A process that the trace does not define has no origin and no parent's number.
      const bool is_defined = process.origin != 0;
      const std::string origin = is_defined ? origin_text(process.origin) : "";
      rows.add(
          {process_id(i), process.pid, is_defined ? SqlValue(process.ppid) : SqlValue(),
           process_id(definitions.find_process(process.parent_id)),
           SqlValue::text_or_null(origin), names_->process(i),
           safe_name(process.executable), safe_name(command),
           known_time(process.start_ns), known_time(process.end_ns),
           SqlValue::text_or_null(how),
           has_end && process.end_how != ARCTRACE_END_EXEC ? SqlValue(process.end_status)
                                                           : SqlValue()});
    }
  }

  void add_threads() {
    SqlInsert rows;
    rows.prepare(file_, "threads", 9);
    const Definitions& definitions = replay_->definitions();
    std::vector<const ThreadTree*> trees(definitions.threads().size());
    for (const ThreadTree& tree : replay_->threads()) trees[tree.thread] = &tree;
    for (const ThreadTree& tree : replay_->interrupts()) trees[tree.thread] = &tree;
    for (ThreadIndex i = 0; i < definitions.threads().size(); ++i) {
      const Thread& thread = definitions.threads()[i];
      const ThreadTree* tree = trees[i];
      const bool has_cpu = tree != nullptr && replay_->has_dispatches();
      const CpuTime cpu = has_cpu ? replay_->tree().cpu_total(tree->root) : CpuTime{};
      rows.add({thread_id(i), process_id(thread.process), thread.tid, names_->thread(i),
                tree == nullptr ? SqlValue() : SqlValue(tree->start_ns),
                tree == nullptr ? SqlValue() : SqlValue(tree->stop_ns),
                has_cpu ? SqlValue(cpu.cpu_ns) : SqlValue(),
                has_cpu ? SqlValue(cpu.off_ns) : SqlValue(),
                has_cpu ? SqlValue(cpu.unknown_ns) : SqlValue()});
    }
  }

  void add_trace() {
    SqlInsert rows;
    rows.prepare(file_, "trace", 2);
    if (const Session* session = settings().session) {
      const std::string version =
          absl::StrCat(session->version_major, ".", session->version_minor);
      rows.add({"format", version});
      rows.add({"host", safe_name(session->host)});
      rows.add({"kernel", safe_name(session->kernel)});
      rows.add({"start_realtime_ns", session->start_realtime_ns});
      rows.add({"recorder", safe_name(absl::StrJoin(session->recorder_command, " "))});
      if (session->child_wait_status.has_value()) {
        rows.add({"wait_status", *session->child_wait_status});
      }
    }
    if (const Summary* summary = settings().summary) {
      rows.add({"records", summary->records});
      rows.add({"lost", summary->lost});
      rows.add({"removed", summary->lost_by_cause[ARCTRACE_LOST_REMOVED]});
      rows.add({"elsewhere", summary->elsewhere});
      if (summary->filtered_out != 0) {
        rows.add({"filtered_out", summary->filtered_out});
      }
    }
    if (settings().filters_events()) {
      rows.add({"events_left_out", settings().events->left_out()});
      rows.add({"where", safe_text(where_text(*settings().events))});
    }
  }

  Replay* replay_ = nullptr;
  const WriteText* write_ = nullptr;
  std::optional<ShownNames> whole_names_;  // as in other data, such as JSON
  std::optional<ExportNames> names_;
  SqliteFile file_;
  SqlInsert paths_rows_, frames_rows_, states_rows_, events_rows_, losses_rows_,
      gaps_rows_;
  // By thread and coroutine: the paths of the open calls, outermost first.
  absl::flat_hash_map<std::pair<ThreadIndex, uint32_t>, std::vector<uint32_t>> stacks_;
  absl::flat_hash_map<std::pair<uint32_t, FunctionId>, uint32_t> paths_;
  uint64_t last_frame_ = 0;
};

}  // namespace

std::unique_ptr<Exporter> make_sqlite_export(const ExportSettings& settings) {
  return std::make_unique<SqliteExport>(settings);
}

}  // namespace arctrace::reader
