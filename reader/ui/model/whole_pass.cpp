#include "reader/ui/model/whole_pass.hpp"

#include <utility>

#include "reader/streams/replay_run.hpp"

namespace arctrace::reader {

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
  options.hook_costs = trace_->session().hook_costs;
  options.listener = parts_.get();
  if (definitions.has_dispatches()) options.schedule = parts_.get();
  replay_ = std::make_unique<Replay>(definitions, &symbolizer_, options);
  parts_->begin(*replay_, &trace_->session());
  ReplayWatch watch;
  watch.gap = [this](const Gap& gap) { gaps_->add(gap); };
  watch.goes = [this](const ReadSoFar& so_far) {
    records_.store(so_far.records, std::memory_order_relaxed);
    time_ns_.store(so_far.time_ns, std::memory_order_relaxed);
    return !stops_();
  };
  const absl::StatusOr<ReplayEnd> read = run_replay(*trace_, *replay_, watch);
  if (!read.ok()) return read.status();
  if (read->is_stopped) return absl::CancelledError("interrupted");
  parts_->finish();
  return absl::OkStatus();
}

PageFacts WholePass::facts() {
  return {*replay_, *parts_, &trace_->session(), &trace_->summary(), &*gaps_};
}

}  // namespace arctrace::reader
