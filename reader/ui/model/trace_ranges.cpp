#include "reader/ui/model/trace_ranges.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "reader/streams/replay_run.hpp"
#include "reader/trace/text_escape.hpp"
#include "reader/ui/model/whole_pass.hpp"

namespace arctrace::reader {
namespace {

// Whether threads have the same numbers in both definitions.
bool has_same_threads(const Definitions& a, const Definitions& b) {
  return a.processes().size() == b.processes().size() &&
         std::equal(a.threads().begin(), a.threads().end(), b.threads().begin(),
                    b.threads().end(), [](const Thread& one, const Thread& other) {
                      return one.writer == other.writer && one.process == other.process;
                    });
}

ReplayOptions options_for(const Trace& trace, Times times, PageParts& parts) {
  ReplayOptions made = replay_options_of(trace);
  made.filter.from_ns = times.from_ns;
  made.filter.until_ns = times.until_ns;
  made.hook_costs = trace.session().hook_costs;
  made.listener = &parts;
  if (trace.definitions().has_dispatches()) made.schedule = &parts;
  return made;
}

}  // namespace

TraceRange::TraceRange(const Trace& trace, Symbolizer& symbolizer, Times times,
                       size_t max_items)
    : times_(times),
      parts_(trace.definitions(), max_items),
      replay_(trace.definitions(), &symbolizer, options_for(trace, times, parts_)) {}

void TraceRange::take_ids(Functions& page) {
  ids_ = ids_on_page(replay_.functions(), page);
}

std::vector<FunctionId> ids_on_page(const Functions& functions, Functions& page) {
  std::vector<FunctionId> ids = {kRootFunction, kUnknownFunction};
  for (FunctionId id = kUnknownFunction + 1; id < functions.size(); ++id) {
    const Function& function = functions[id];
    ids.push_back(page.intern(function.module, function.name, function.location));
  }
  return ids;
}

TraceRanges::TraceRanges(Trace& trace, const TraceFiles* files,
                         const SymbolOptions& symbols, TraceFiles::Stops stops)
    : trace_(trace), files_(files), stops_(std::move(stops)), symbolizer_(symbols) {}

absl::Status TraceRanges::read(const TimeRange& range, Replay& replay) {
  std::optional<Trace> opened;
  if (files_ != nullptr) {
    absl::StatusOr<Trace> made = files_->trace({.range = range}, stops_);
    if (!made.ok()) return made.status();
    if (!has_same_threads(made->definitions(), trace_.definitions())) {
      return absl::DataLossError(absl::StrCat(escaped(trace_.session().path),
                                              " has changed since it was opened"));
    }
    opened = *std::move(made);
  }
  ReplayWatch watch;
  watch.goes = [this](const ReadSoFar& /*so_far*/) { return !stops_(); };
  const absl::StatusOr<ReplayEnd> read =
      run_replay(opened.has_value() ? *opened : trace_, replay, watch);
  if (!read.ok()) return read.status();
  return read->is_stopped ? absl::CancelledError("interrupted") : absl::OkStatus();
}

absl::StatusOr<TraceRange*> TraceRanges::read_into(Kept& kept, Times times,
                                                   size_t max_items, Functions& page) {
  Kept made;
  TraceRange& range = made.emplace_back(trace_, symbolizer_, times, max_items);
  range.parts().begin(range.replay(), &trace_.session());
  absl::Status status = read({times.from_ns, times.until_ns}, range.replay());
  if (!status.ok()) return status;
  range.parts().finish();
  range.take_ids(page);
  kept.splice(kept.begin(), made);
  if (kept.size() > kKeptMax) kept.pop_back();
  return &kept.front();
}

absl::StatusOr<TraceRange*> TraceRanges::sums_of(Times times, Functions& page) {
  for (TraceRange& range : sums_) {
    if (range.is_of(times)) return &range;
  }
  return read_into(sums_, times, 0, page);
}

absl::StatusOr<TraceRange*> TraceRanges::detail_of(Times needed, Times wanted,
                                                   uint64_t pixel_ns, Functions& page) {
  for (TraceRange& range : details_) {
    if (range.has(needed) && range.timeline().rows().grain_ns() <= pixel_ns) {
      return &range;
    }
  }
  return read_into(details_, wanted, kItemsMax, page);
}

void TraceRanges::take_ids(Functions& page) {
  for (Kept* kept : {&sums_, &details_}) {
    for (TraceRange& range : *kept) range.take_ids(page);
  }
}

}  // namespace arctrace::reader
