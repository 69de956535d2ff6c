#include "reader/ui/tables/trace_calls.hpp"

#include "reader/report/summary_lines.hpp"

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

}  // namespace arctrace::reader
