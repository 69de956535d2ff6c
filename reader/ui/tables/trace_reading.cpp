#include "reader/ui/tables/trace_reading.hpp"

#include <optional>
#include <utility>

#include "reader/render/describe_record.hpp"
#include "reader/render/record_describer.hpp"
#include "reader/render/terminal.hpp"

namespace arctrace::reader {

TraceReading::TraceReading(Trace& trace, Symbolizer& symbolizer, ReplayOptions options,
                           WantsGap wants_gap, Goes goes)
    : trace_(trace),
      symbolizer_(symbolizer),
      options_(std::move(options)),
      wants_gap_(std::move(wants_gap)),
      goes_(std::move(goes)),
      calls_(trace.definitions(), &trace.session()),
      replay_(trace.definitions(), &symbolizer, with_listeners()),
      gaps_(trace.definitions()) {}

TraceReading::~TraceReading() = default;

ReplayOptions TraceReading::with_listeners() {
  ReplayOptions made = options_;
  made.listener = &calls_;
  if (calls_.log() != nullptr) made.schedule = &calls_;
  return made;
}

absl::Status TraceReading::read(const std::function<void(const Record&)>& to) {
  uint64_t records = 0;
  bool goes = true;
  absl::Status status = trace_.read([&](const Record& record) {
    to(record);
    if (++records % kRecordsBetweenChecks == 0) {
      time_ns_ = record.time_ns;
      goes = goes_(records);
    }
    return goes;
  });
  if (!status.ok()) return status;
  if (!goes) return absl::CancelledError("interrupted");
  records_ = records;
  return absl::OkStatus();
}

absl::Status TraceReading::read_all() {
  GapFinder finder(trace_.definitions(), &trace_.clock(), trace_.session().mode);
  const auto add_gap = [&](const Gap& gap) {
    if (wants_gap_(gap)) gaps_.add(gap);
  };
  calls_.begin(replay_);
  absl::Status status = read([&](const Record& record) {
    replay_.add(record);
    if (const std::optional<Gap> gap = finder.add(record)) add_gap(*gap);
  });
  if (!status.ok()) return status;
  replay_.finish();
  calls_.finish();
  summary_ = trace_.summary();
  for (const Gap& gap : finder.finish(&summary_)) add_gap(gap);
  return absl::OkStatus();
}

FinishedPass TraceReading::facts() {
  return {replay_, calls_, &trace_.session(), &summary_, &gaps_};
}

// The functions of another replay are found by their names.
absl::StatusOr<SlowestOfFunction> TraceReading::slowest(FunctionId function) {
  const Function& wanted = replay_.functions()[function];
  ReplayOptions options = options_;
  const Replay* other = nullptr;
  RecordDescriber* describer = nullptr;
  const DescribeRecord describe = [&](const Record& record, FieldSink& out) {
    describer->describe(record, {}, out);
  };
  SlowestCalls slowest(
      [&](FunctionId id) {
        const Function& candidate = other->functions()[id];
        return candidate.name == wanted.name && candidate.module == wanted.module;
      },
      [&](const Record& record) { return content_text(describe, record); },
      SortKey::kTotal, kSlowestShown);
  options.listener = &slowest;
  Replay replay(trace_.definitions(), &symbolizer_, options);
  RecordDescriber own_describer(trace_, replay.resolver(), {});
  other = &replay;
  describer = &own_describer;
  absl::Status status = read([&](const Record& record) { replay.add(record); });
  if (!status.ok()) return status;
  replay.finish();
  SlowestOfFunction found{slowest.take(), slowest.count()};
  Functions& ours = replay_.resolver().mutable_functions();
  const auto our_id = [&](FunctionId id) {
    const Function& theirs = replay.functions()[id];
    return ours.intern(theirs.module, theirs.name, theirs.location);
  };
  for (SlowCall& call : found.calls) {
    call.frame.function = function;
    for (FunctionId& id : call.path) {
      if (id > kUnknownFunction) id = our_id(id);
    }
  }
  return found;
}

}  // namespace arctrace::reader
