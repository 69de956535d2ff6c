// The interface of a view: one way to show the replayed calls of a trace, as text or
// JSON. Views that are alike share a file; each has an entry in the table of
// view_types.cpp.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <string>
#include <vector>

#include "reader/analysis/tree_groups.hpp"
#include "reader/render/gap_list.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/replay/replay.hpp"
#include "reader/streams/field_sink.hpp"
#include "reader/streams/json_writer.hpp"
#include "reader/trace/session.hpp"

namespace arctrace::reader {

// The settings with which a view is made.
struct ViewSettings {
  ViewOptions options;
  // In views of call trees: one table for each thread or process, or for all.
  Grouping grouping = Grouping::kThread;
  // Calls that ended and were shorter are not shown. The replay's filter has the same.
  uint64_t min_duration_ns = 0;
  bool is_json = false;  // it will be written as JSON, else as text
  // The definitions of the trace; they outlive the view.
  const Definitions* definitions = nullptr;
  // The facts that the trace tells of itself; null: nothing is known. The summary is
  // complete once the view is written.
  const Session* session = nullptr;
  const Summary* summary = nullptr;
  const GapList* gaps = nullptr;         // the same
  const EnabledList* enabled = nullptr;  // the same
  // The symbolizer's findings about the modules that were looked up so far.
  const std::vector<std::string>* symbol_findings = nullptr;
  // The files of the trace, as words of a command; empty for the one that is read by
  // default.
  std::vector<std::string> files;
  bool has_debuginfod = false;  // debug files are downloaded
  // Globs of the functions, for views about single functions.
  std::vector<std::string> functions;
  DescribeRecord describe;
};

// A view is used once, in this order: the replay gets its listeners; begin_text() or
// begin_json(); the records; the replay's finish(); write_text() or write_json(). Only a
// view without a begin of its own can be written in both forms.
class View {
 public:
  virtual ~View() = default;

  // The listener to which the replay gives each call and record, or each state of a
  // thread. Null: the view does not need it.
  virtual ReplayListener* call_listener() { return nullptr; }
  virtual ScheduleListener* schedule_listener() { return nullptr; }

  // Called before the first record. A view that writes while the trace is read keeps the
  // references, which outlive it, and writes to them from its listener.
  virtual void begin_text(Replay& /*replay*/, const WriteText& /*write*/) {}
  virtual void begin_json(Replay& /*replay*/, JsonWriter& /*json*/) {}

  // Writes the view, or the rest of it; JSON as members of the object that is open. Both
  // stop early once the receiver wants no more. Error: what the view had stored on disk
  // was lost.
  virtual absl::Status write_text(Replay& replay, const WriteText& write) = 0;
  virtual absl::Status write_json(Replay& replay, JsonWriter& json) = 0;
};

}  // namespace arctrace::reader
