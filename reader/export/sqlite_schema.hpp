// The tables and views of export --to=sqlite, as docs/guide/sqlite.md describes them.
#pragma once

namespace arctrace::reader {

// For `PRAGMA user_version`: raised when a table or column changes its meaning or goes.
inline constexpr const char* kSqliteTables = R"(
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

// After the rows, which go in faster without indexes.
inline constexpr const char* kSqliteViews = R"(
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

}  // namespace arctrace::reader
