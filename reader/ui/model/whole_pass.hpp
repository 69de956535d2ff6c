// The pass over a whole trace, which collects the page's data about all of its time.
#pragma once

#include <absl/status/status.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "reader/render/gap_list.hpp"
#include "reader/replay/replay.hpp"
#include "reader/symbols/symbolizer.hpp"
#include "reader/trace/trace.hpp"
#include "reader/trace/trace_files.hpp"
#include "reader/ui/model/page_json.hpp"
#include "reader/ui/model/page_parts.hpp"

namespace arctrace::reader {

// Reads with a Trace and a Symbolizer of its own, in a thread of its own if that is
// wanted. The results are available once is_done() is true, and belong to the thread that
// called it.
class WholePass {
 public:
  // `stops`: whether the pass shall end; asked in the thread that reads. `max_items`: of
  // the time line.
  WholePass(const TraceFiles& files, const SymbolOptions& symbols, size_t max_items,
            TraceFiles::Stops stops);
  // Ends the pass.
  ~WholePass();
  WholePass(const WholePass&) = delete;
  WholePass& operator=(const WholePass&) = delete;

  // One of both functions is to be called, once. The thread has the rights of the
  // caller's.
  void start();
  void run();

  // Callable from any thread: the number of records that were read, the time of the last
  // one, and the seconds since the pass began.
  uint64_t records() const { return records_.load(std::memory_order_relaxed); }
  int64_t time_ns() const { return time_ns_.load(std::memory_order_relaxed); }
  double seconds() const;
  bool is_done() const { return is_done_.load(std::memory_order_acquire); }

  // REQUIRES, as all functions below: is_done(). Error: the trace could not be read;
  // kCancelled: it was stopped.
  const absl::Status& status() const { return status_; }
  // REQUIRES: status() is ok.
  Trace& trace() { return *trace_; }
  Symbolizer& symbolizer() { return symbolizer_; }
  Replay& replay() { return *replay_; }
  PageParts& parts() { return *parts_; }
  const PageParts& parts() const { return *parts_; }
  const GapList& gaps() const { return *gaps_; }
  PageFacts facts();

 private:
  using Clock = std::chrono::steady_clock;

  absl::Status read();

  const TraceFiles& files_;
  const size_t max_items_;
  const TraceFiles::Stops stops_;
  const Clock::time_point begin_ = Clock::now();
  Symbolizer symbolizer_;
  std::optional<Trace> trace_;
  std::unique_ptr<PageParts> parts_;
  std::unique_ptr<Replay> replay_;
  std::optional<GapList> gaps_;
  absl::Status status_;
  std::atomic<uint64_t> records_{0};
  std::atomic<int64_t> time_ns_{INT64_MIN};
  std::atomic<bool> is_done_{false};
  std::atomic<bool> is_unwanted_{false};
  std::thread thread_;
};

}  // namespace arctrace::reader
