#include "reader/c_api/replay_setup.hpp"

#include <algorithm>
#include <cstring>

#include "reader/streams/replay_run.hpp"

namespace arctrace::reader {
namespace {

constexpr size_t kFirstFilterSize = sizeof(arctrace_reader_filter);

}  // namespace

std::optional<ReplayFilter> read_filter(const arctrace_reader_filter* given) {
  ReplayFilter filter;
  if (given == nullptr) return filter;
  if (given->size < kFirstFilterSize) return std::nullopt;
  arctrace_reader_filter known = ARCTRACE_READER_FILTER;
  std::memcpy(&known, given, std::min(given->size, sizeof known));
  if ((known.only == nullptr && known.only_count != 0) ||
      (known.except == nullptr && known.except_count != 0)) {
    return std::nullopt;
  }
  filter.from_ns = known.from_ns;
  filter.until_ns = known.until_ns;
  filter.min_duration_ns = known.min_duration_ns;
  filter.max_depth = known.max_depth;
  if (known.only_count != 0) {
    filter.only.assign(known.only, known.only + known.only_count);
  }
  if (known.except_count != 0) {
    filter.except.assign(known.except, known.except + known.except_count);
  }
  return filter;
}

ReplayOptions replay_options_for(const Trace& trace, const ReplayFilter& filter,
                                 ReplayListener* listener) {
  ReplayOptions options = replay_options_of(trace);
  options.filter = filter;
  options.listener = listener;
  return options;
}

}  // namespace arctrace::reader
