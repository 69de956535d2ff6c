// The cursor of calls.
#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reader/c_api/call_batches.hpp"
#include "reader/c_api/trace_handle.hpp"
#include "reader/streams/field_sink.hpp"
#include "reader/streams/record_describer.hpp"
#include "reader/streams/replay_run.hpp"
#include "reader/trace/read_ahead.hpp"

namespace arctrace::reader {
namespace {

using CallsAhead = ReadAhead<CallBatch>;

absl::Status produce_calls(arctrace_reader_trace& handle, const ReplayFilter& filter,
                           bool with_values, CallsAhead& ahead) {
  Trace& trace = handle.trace;
  Symbolizer symbolizer(handle.symbols);
  std::optional<RecordDescriber> describer;
  CallBatches::Describe describe;
  if (with_values) {
    describe = [&describer](const Record& record) {
      return content_text(
          [&](const Record& r, FieldSink& out) { describer->describe(r, {}, out); },
          record);
    };
  }
  CallBatches batches(std::move(describe),
                      [&ahead](CallBatch& batch) { return ahead.put(batch); });
  Replay replay(trace.definitions(), &symbolizer,
                replay_options_for(trace, filter, &batches));
  describer.emplace(trace, replay.resolver(), DescribeOptions());
  batches.set_functions(replay.functions());
  ReplayWatch watch;
  watch.goes = [&batches](const ReadSoFar& /*so_far*/) { return batches.wants_more(); };
  const absl::StatusOr<ReplayEnd> read = run_replay(trace, replay, watch);
  if (read.ok() && !read->is_stopped) batches.finish();
  return read.status();
}

// Reads the columns that `given` has; an earlier version of the struct has fewer.
bool read_columns(const arctrace_reader_columns* given, arctrace_reader_columns& known) {
  if (given == nullptr || given->size < sizeof(arctrace_reader_columns)) return false;
  std::memcpy(&known, given, sizeof known);
  return true;
}

template <class Value, class Member>
void fill(Value* column, const arctrace_reader_call* calls, size_t count,
          Member arctrace_reader_call::*member) {
  if (column == nullptr) return;
  for (size_t i = 0; i < count; ++i) column[i] = calls[i].*member;
}

}  // namespace
}  // namespace arctrace::reader

using arctrace::reader::CallBatch;
using arctrace::reader::CallsAhead;
using arctrace::reader::failed;
using arctrace::reader::guarded;

struct arctrace_reader_calls {
  arctrace_reader_calls(arctrace_reader_trace& of, arctrace::reader::ReplayFilter filter,
                        bool with_values)
      : trace(of), ahead([&of, filter = std::move(filter), with_values](CallsAhead& to) {
          return arctrace::reader::produce_calls(of, filter, with_values, to);
        }) {
    trace.is_busy = true;
  }
  arctrace_reader_calls(const arctrace_reader_calls&) = delete;
  arctrace_reader_calls& operator=(const arctrace_reader_calls&) = delete;
  ~arctrace_reader_calls() {
    ahead.stop();
    trace.is_busy = false;
  }

  // Whether there is a call at `next`, which may take the next batch.
  bool has_next() {
    while (next == batch.calls.size()) {
      next = 0;
      if (has_ended || !ahead.take(batch)) {
        if (!has_ended && ahead.status().ok()) trace.facts.sum_up(trace.trace);
        has_ended = true;
        return false;
      }
      for (auto& [name, module] : batch.functions) {
        const auto& kept = names.emplace_back(std::move(name), std::move(module));
        functions.push_back({sizeof(arctrace_reader_function), 0, kept.first.c_str(),
                             kept.second.c_str()});
      }
      paths.insert(paths.end(), batch.paths.begin(), batch.paths.end());
    }
    return true;
  }

  // REQUIRES: has_next() was false.
  int result() const {
    return ahead.status().ok() ? int{ARCTRACE_READER_OK} : failed(ahead.status());
  }

  arctrace_reader_trace& trace;
  CallBatch batch;
  size_t next = 0;  // in batch.calls
  bool has_ended = false;
  std::deque<std::pair<std::string, std::string>> names;
  std::deque<arctrace_reader_function> functions;
  std::vector<std::pair<uint32_t, uint32_t>> paths;
  CallsAhead ahead;
};

int arctrace_reader_calls_open(arctrace_reader_trace* trace,
                               const arctrace_reader_filter* filter, uint32_t flags,
                               arctrace_reader_calls** calls) {
  return guarded([&] {
    std::optional<arctrace::reader::ReplayFilter> shown =
        arctrace::reader::read_filter(filter);
    if (!shown.has_value() || (flags & ~uint32_t{ARCTRACE_READER_VALUES}) != 0) {
      return failed(ARCTRACE_READER_ARGUMENT,
                    "calls: the filter is not set, or an unknown flag");
    }
    if (trace->is_busy) {
      return failed(ARCTRACE_READER_BUSY, "calls: the trace has a cursor");
    }
    *calls = new arctrace_reader_calls(*trace, *std::move(shown),
                                       (flags & ARCTRACE_READER_VALUES) != 0);
    return int{ARCTRACE_READER_OK};
  });
}

int arctrace_reader_calls_next(arctrace_reader_calls* calls,
                               const arctrace_reader_call** call) {
  return guarded([&] {
    *call = nullptr;
    if (!calls->has_next()) return calls->result();
    *call = &calls->batch.calls[calls->next++];
    return int{ARCTRACE_READER_OK};
  });
}

int arctrace_reader_calls_columns(arctrace_reader_calls* calls,
                                  const arctrace_reader_columns* columns, size_t* count) {
  return guarded([&] {
    *count = 0;
    arctrace_reader_columns to{};
    if (!arctrace::reader::read_columns(columns, to)) {
      return failed(ARCTRACE_READER_ARGUMENT, "columns: size is not set");
    }
    size_t done = 0;
    while (done < to.capacity && calls->has_next()) {
      const arctrace_reader_call* from = &calls->batch.calls[calls->next];
      const size_t part =
          std::min(to.capacity - done, calls->batch.calls.size() - calls->next);
      const auto put = [&](auto* column, auto member) {
        arctrace::reader::fill(column == nullptr ? nullptr : column + done, from, part,
                               member);
      };
      put(to.start_ns, &arctrace_reader_call::start_ns);
      put(to.end_ns, &arctrace_reader_call::end_ns);
      put(to.duration_ns, &arctrace_reader_call::duration_ns);
      put(to.self_ns, &arctrace_reader_call::self_ns);
      put(to.off_cpu_ns, &arctrace_reader_call::off_cpu_ns);
      put(to.function, &arctrace_reader_call::function);
      put(to.thread, &arctrace_reader_call::thread);
      put(to.depth, &arctrace_reader_call::depth);
      put(to.path, &arctrace_reader_call::path);
      put(to.flags, &arctrace_reader_call::flags);
      put(to.coroutine, &arctrace_reader_call::coroutine);
      put(to.not_known_ns, &arctrace_reader_call::not_known_ns);
      calls->next += part;
      done += part;
    }
    *count = done;
    return done == 0 && calls->has_ended ? calls->result() : int{ARCTRACE_READER_OK};
  });
}

size_t arctrace_reader_calls_functions(const arctrace_reader_calls* calls) {
  return calls->functions.size();
}

size_t arctrace_reader_calls_paths(const arctrace_reader_calls* calls) {
  return calls->paths.size();
}

const arctrace_reader_function* arctrace_reader_calls_function(
    const arctrace_reader_calls* calls, uint32_t function) {
  return function < calls->functions.size() ? &calls->functions[function] : nullptr;
}

int arctrace_reader_calls_path(const arctrace_reader_calls* calls, uint32_t path,
                               uint32_t* parent, uint32_t* function) {
  return guarded([&] {
    if (path >= calls->paths.size()) {
      return failed(ARCTRACE_READER_ARGUMENT, "path: there is no such path");
    }
    *parent = calls->paths[path].first;
    *function = calls->paths[path].second;
    return int{ARCTRACE_READER_OK};
  });
}

void arctrace_reader_calls_close(arctrace_reader_calls* calls) { delete calls; }
