// The interface of a view: one way to show the replayed calls of a trace, as text or
// JSON. Each view has a file of its own, and an entry in the table of view_types.cpp.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <string>
#include <vector>

#include "reader/analysis/tree_groups.hpp"
#include "reader/render/enabled_list.hpp"
#include "reader/render/gap_list.hpp"
#include "reader/render/view_options.hpp"
#include "reader/replay/replay.hpp"
#include "reader/streams/describe_record.hpp"
#include "reader/streams/json_writer.hpp"
#include "reader/streams/write_text.hpp"
#include "reader/trace/session.hpp"
#include "reader/trace/summary.hpp"

namespace arctrace::reader {

// What a view is made with.
struct ViewSettings {
  ViewOptions options;
  // Of views that are made of call trees: one table for each thread or process, or for
  // all.
  Grouping grouping = Grouping::kThread;
  // Calls that ended and were shorter are not shown. The replay's filter has the same.
  uint64_t min_duration_ns = 0;
  bool is_json = false;  // it will be written as JSON, else as text
  // Of the trace; they outlive the view.
  const Definitions* definitions = nullptr;
  // What the trace says of itself; null: nothing is known. The summary is complete once
  // the view is written.
  const Session* session = nullptr;
  const Summary* summary = nullptr;
  const GapList* gaps = nullptr;         // the same
  const EnabledList* enabled = nullptr;  // the same
  // The symbolizer's, of the modules that were asked for so far.
  const std::vector<std::string>* symbol_findings = nullptr;
  // Globs of the functions that a view is about which is about single functions.
  std::vector<std::string> functions;
  DescribeRecord describe;
};

// A view is used once, in this order: the replay gets its listeners; begin_text() or
// begin_json(); the records; the replay's finish(); write_text() or write_json(). Only a
// view without a begin of its own can be written in both forms.
class View {
 public:
  virtual ~View() = default;

  // What the replay is to call back for each call and record, or for each state of a
  // thread. Null: the view does not need them.
  virtual ReplayListener* call_listener() { return nullptr; }
  virtual ScheduleListener* schedule_listener() { return nullptr; }

  // Before the first record. A view that writes while the trace is read keeps the
  // references, which outlive it, and writes to them from its listener.
  virtual void begin_text(Replay& /*replay*/, const WriteText& /*write*/) {}
  virtual void begin_json(Replay& /*replay*/, JsonWriter& /*json*/) {}

  // Writes the view, or the rest of it; JSON as members of the object that is open. Both
  // stop early once the receiver wants no more. Error: what the view had set aside on
  // disk could not be kept.
  virtual absl::Status write_text(Replay& replay, const WriteText& write) = 0;
  virtual absl::Status write_json(Replay& replay, JsonWriter& json) = 0;
};

}  // namespace arctrace::reader
