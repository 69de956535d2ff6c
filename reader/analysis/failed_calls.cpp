#include "reader/analysis/failed_calls.hpp"

#include <arctrace/format.h>

#include <algorithm>

#include "reader/trace/call_args.hpp"

namespace arctrace::reader {

void ErrorCounts::args(const ArgsInfo& args) {
  if (args.record->type != ARCTRACE_TYPE_RESULT) return;
  const std::vector<CallArg> values = decode_args(args.record->body, "");
  if (!values.empty()) open_[args.token] = errno_of(values);
}

void ErrorCounts::frame_closed(const FrameInfo& frame, uint64_t token, bool shown) {
  const auto found = open_.find(token);
  if (found == open_.end()) return;
  const int64_t error = found->second;
  open_.erase(found);
  if (!shown || !is_call(frame.flags)) return;
  ++results_;
  ++results_of_[frame.function];
  if (error == 0) return;
  FailedCalls& calls = failed_[{frame.function, error}];
  if (calls.errors == 0) calls.first_ns = frame.stop_ns;
  ++calls.errors;
  calls.total_ns += frame.duration_ns;
  calls.longest_ns = std::max(calls.longest_ns, frame.duration_ns);
}

std::vector<FailedCalls> ErrorCounts::failed() const {
  std::vector<FailedCalls> all;
  all.reserve(failed_.size());
  for (const auto& [key, sums] : failed_) {
    FailedCalls& calls = all.emplace_back(sums);
    calls.function = key.first;
    calls.error = key.second;
    calls.results = results_of_.at(key.first);
  }
  return all;
}

}  // namespace arctrace::reader
