#include "reader/streams/replay_run.hpp"

#include <optional>

#include "reader/trace/read_ahead.hpp"

namespace arctrace::reader {

ReplayOptions replay_options_of(const Trace& trace) {
  ReplayOptions made;
  made.has_wake_ups = !trace.session().has_perf_records;
  made.ticks = &trace.clock();
  made.mode = trace.session().mode;
  return made;
}

uint64_t bytes_of(const Record& record, const Session& session) {
  const uint16_t exclusive = session.stamps == ARCTRACE_STAMPS_EXACT
                                 ? ARCTRACE_FORM_COMPACT
                                 : ARCTRACE_FORM_BARE;
  return record.body.size() +
         head_size(record.compact ? exclusive : uint16_t{ARCTRACE_FORM_FULL});
}

absl::StatusOr<ReplayEnd> run_replay(Trace& trace, Replay& replay,
                                     const ReplayWatch& watch, Reading reading) {
  constexpr uint64_t kRecordsBetweenChecks = 1 << 14;
  std::optional<GapFinder> finder;
  if (watch.gap) {
    finder.emplace(trace.definitions(), &trace.clock(), trace.session().mode);
  }
  ReadSoFar so_far{0, 0, INT64_MIN};
  bool goes = true;
  const auto take = [&](const Record& record) {
    replay.add(record);
    if (watch.record) watch.record(record);
    if (finder.has_value()) {
      if (const std::optional<Gap> gap = finder->add(record)) watch.gap(*gap);
    }
    so_far.bytes += bytes_of(record, trace.session());
    if (++so_far.records % kRecordsBetweenChecks == 0 && watch.goes) {
      so_far.time_ns = record.time_ns;
      goes = watch.goes(so_far);
    }
    return goes;
  };
  absl::Status status =
      reading == Reading::kHere ? trace.read(take) : read_concurrently(trace, take);
  if (!status.ok()) return status;
  const ReplayEnd end{!goes, so_far.records};
  if (end.is_stopped && !watch.finishes_when_stopped) return end;
  replay.finish();
  if (finder.has_value()) {
    for (const Gap& gap : finder->finish(&trace.summary())) watch.gap(gap);
  }
  return end;
}

}  // namespace arctrace::reader
