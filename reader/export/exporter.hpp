// The interface of an exporter: one way to write a replayed trace for another program.
// Formats that are alike share a file; each has an entry in export_formats.cpp.
#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reader/analysis/tree_groups.hpp"
#include "reader/replay/replay.hpp"
#include "reader/streams/field_sink.hpp"
#include "reader/streams/json_writer.hpp"
#include "reader/trace/event_fields.hpp"
#include "reader/trace/gaps.hpp"
#include "reader/trace/session.hpp"
#include "reader/ui/model/exact_times.hpp"

namespace arctrace::reader {

// Exporters write about this many bytes at once.
inline constexpr size_t kExportPiece = size_t{64} << 10;

// The unit of the numbers in a format of sums.
enum class ExportWeight : uint8_t { kWall, kCpu, kOffCpu, kCount };

// The settings with which an exporter is made.
struct ExportSettings {
  ExportWeight weight = ExportWeight::kWall;
  // In formats of sums: the threads whose stacks are added up.
  Grouping grouping = Grouping::kThread;
  // Calls that ended and were shorter are not exported. The replay's filter has the same
  // minimum.
  uint64_t min_duration_ns = 0;
  // In a format that leaves calls out: the times of which it has all.
  std::vector<ExactRange> exact;
  // The definitions of the trace. They outlive the exporter.
  const Definitions* definitions = nullptr;
  // What the trace says about itself; null: nothing is known. The summary is complete
  // when finish() is called. Both outlive the exporter.
  const Session* session = nullptr;
  const Summary* summary = nullptr;
  // The filter of the events that the replay passes on; once that is finished, it knows
  // how many it left out. Null: all events.
  const EventFilter* events = nullptr;
  DescribeRecord describe;

  // The number of records that the recording's own filter left out.
  uint64_t filtered_out() const { return summary == nullptr ? 0 : summary->filtered_out; }
  bool filters_events() const { return events != nullptr && events->is_set(); }
};

// An exporter is used once, in this order: a replay of its own for the survey, if there
// is one; the replay gets its listeners; begin(); the records, and gap() for each gap
// when the record comes that ends it; the replay's finish(), and the rest of the gaps;
// finish(). Everything is written as soon as it is known, so that memory is bounded by
// open calls, distinct stacks and names.
class Exporter {
 public:
  virtual ~Exporter() = default;

  // The listener of the survey, a replay of all records before the one that is exported;
  // the exporter uses it after that replay's finish(). Null: no survey is needed. There
  // is none of a session's buffer, which may have changed the next time, nor without the
  // kernel's records.
  virtual ScheduleListener* survey_listener() { return nullptr; }
  virtual absl::Status finish_survey(const Replay& /*replay*/) {
    return absl::OkStatus();
  }

  // The listeners that the replay gets: for each call and record, and for each state of a
  // thread. Null: the exporter needs none.
  virtual ReplayListener* call_listener() { return nullptr; }
  virtual ScheduleListener* schedule_listener() { return nullptr; }

  // Whether it shows what recording cost, so that the replay has to know it.
  virtual bool shows_costs() const { return false; }

  // Called before the first record. The exporter keeps both references, which must
  // outlive it.
  virtual void begin(Replay& replay, const WriteText& write) = 0;

  // Called for each time of which records are missing, cut at the filter's range.
  virtual void gap(const Gap& /*gap*/) {}

  // Writes the rest. Error: what the exporter stored in a temporary file was lost.
  virtual absl::Status finish() = 0;
};

}  // namespace arctrace::reader
