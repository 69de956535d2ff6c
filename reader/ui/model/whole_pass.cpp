#include "reader/ui/model/whole_pass.hpp"

#include <utility>

#include "reader/render/terminal.hpp"
#include "reader/trace/gaps.hpp"

namespace arctrace::reader {

ReplayOptions replay_options_of(const Trace& trace) {
  ReplayOptions made;
  made.has_wake_ups = !trace.session().has_perf_records;
  made.ticks = &trace.clock();
  made.mode = trace.session().mode;
  return made;
}

WholePass::WholePass(const TraceFiles& files, const SymbolOptions& symbols,
                     size_t max_items, TraceFiles::Stops stops)
    : files_(files),
      max_items_(max_items),
      stops_([this, stops = std::move(stops)] {
        return is_unwanted_.load(std::memory_order_relaxed) || stops();
      }),
      symbolizer_(symbols) {}

WholePass::~WholePass() {
  is_unwanted_.store(true, std::memory_order_relaxed);
  if (thread_.joinable()) thread_.join();
}

void WholePass::start() {
  thread_ = std::thread([this] { run(); });
}

void WholePass::run() {
  status_ = read();
  is_done_.store(true, std::memory_order_release);
}

double WholePass::seconds() const {
  return std::chrono::duration<double>(Clock::now() - begin_).count();
}

absl::Status WholePass::read() {
  absl::StatusOr<Trace> opened = files_.trace({}, stops_);
  if (!opened.ok()) return opened.status();
  trace_ = *std::move(opened);
  const Definitions& definitions = trace_->definitions();
  parts_ = std::make_unique<PageParts>(definitions, max_items_);
  gaps_.emplace(definitions);
  ReplayOptions options = replay_options_of(*trace_);
  options.listener = parts_.get();
  if (definitions.has_dispatches()) options.schedule = parts_.get();
  replay_ = std::make_unique<Replay>(definitions, &symbolizer_, options);
  GapFinder finder(definitions, &trace_->clock(), trace_->session().mode);
  parts_->begin(*replay_);
  uint64_t records = 0;
  bool goes = true;
  absl::Status status = trace_->read([&](const Record& record) {
    replay_->add(record);
    if (const std::optional<Gap> gap = finder.add(record)) gaps_->add(*gap);
    if (++records % kRecordsBetweenChecks == 0) {
      records_.store(records, std::memory_order_relaxed);
      time_ns_.store(record.time_ns, std::memory_order_relaxed);
      goes = !stops_();
    }
    return goes;
  });
  if (!status.ok()) return status;
  if (!goes) return absl::CancelledError("interrupted");
  replay_->finish();
  parts_->finish();
  for (const Gap& gap : finder.finish(&trace_->summary())) gaps_->add(gap);
  return absl::OkStatus();
}

PageFacts WholePass::facts() {
  return {*replay_, *parts_, &trace_->session(), &trace_->summary(), &*gaps_};
}

}  // namespace arctrace::reader
