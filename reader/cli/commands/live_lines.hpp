// The records of a live session as lines, each as `arctrace dump` prints it.
#pragma once

#include <cstdint>
#include <memory>

#include "reader/cli/options/dump_filter.hpp"
#include "reader/cli/options/options.hpp"
#include "reader/live/live_reader.hpp"
#include "reader/render/dump_printer.hpp"
#include "reader/render/effect_listener.hpp"
#include "reader/render/output.hpp"

namespace arctrace::cli {

// How long a record takes to appear at most, beside the time that it takes to read.
inline constexpr uint64_t kLiveTickNs = 100'000'000;

// Prints a warning if there are any.
void print_missed(uint64_t missed_blocks);

class LiveLines : public reader::LiveTick {
 public:
  // Both must outlive this object.
  LiveLines(OutputFormat format, const DumpFilter& filter, reader::Output& output)
      : format_(format), filter_(filter), output_(output) {}

  reader::ReplayListener* call_listener() override { return &listener_; }
  void begin(const reader::Trace& trace, reader::Replay& replay) override;
  void before(const reader::Record& record) override;
  void after(const reader::Record& record) override;
  void end(const reader::Trace& trace, reader::Replay& replay, int64_t from_ns,
           int64_t until_ns, const std::vector<reader::LiveThread>& threads) override;

 private:
  const OutputFormat format_;
  const DumpFilter& filter_;
  reader::Output& output_;
  reader::EffectListener listener_;
  // Of the tick.
  const reader::Definitions* definitions_ = nullptr;
  reader::Replay* replay_ = nullptr;
  std::unique_ptr<reader::RecordDescriber> describer_;
  std::unique_ptr<reader::DumpPrinter> printer_;
};

}  // namespace arctrace::cli
