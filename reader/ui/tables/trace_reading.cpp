#include "reader/ui/tables/trace_reading.hpp"

#include <optional>
#include <utility>

#include "reader/streams/field_sink.hpp"
#include "reader/streams/record_describer.hpp"
#include "reader/streams/replay_run.hpp"

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

absl::Status TraceReading::read(Replay& replay,
                                const std::function<void(const Gap&)>& gap) {
  ReplayWatch watch;
  watch.gap = gap;
  watch.goes = [this](const ReadSoFar& so_far) {
    time_ns_ = so_far.time_ns;
    return goes_(so_far.records);
  };
  const absl::StatusOr<ReplayEnd> read = run_replay(trace_, replay, watch);
  if (!read.ok()) return read.status();
  if (read->is_stopped) return absl::CancelledError("interrupted");
  records_ = read->records;
  return absl::OkStatus();
}

absl::Status TraceReading::read_all() {
  calls_.begin(replay_);
  absl::Status status = read(replay_, [this](const Gap& gap) {
    if (wants_gap_(gap)) gaps_.add(gap);
  });
  if (!status.ok()) return status;
  calls_.finish();
  summary_ = trace_.summary();
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
  if (absl::Status status = read(replay, nullptr); !status.ok()) return status;
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
