// The records of a live session as lines, each as `arctrace dump` prints it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "reader/cli/options/dump_filter.hpp"
#include "reader/cli/options/live_options.hpp"
#include "reader/cli/options/options.hpp"
#include "reader/live/live_reader.hpp"
#include "reader/render/dump_printer.hpp"
#include "reader/render/output.hpp"
#include "reader/streams/effect_listener.hpp"
#include "reader/trace/event_filter.hpp"

namespace arctrace::cli {

// How long a record takes to appear at most, beside the time that it takes to read.
inline constexpr uint64_t kLiveTickNs = 100'000'000;

// Prints a warning if there are any.
void print_missed(uint64_t missed_blocks);

class LiveLines : public reader::LiveTick {
 public:
  // `options` and `output` must outlive this object.
  LiveLines(const LiveOptions& options, reader::Output& output)
      : format_(options.format),
        filter_(options.filter),
        events_(options.where),
        output_(output) {}

  reader::ReplayListener* call_listener() override { return &listener_; }
  void begin(const reader::Trace& trace, reader::Replay& replay) override;
  void before(const reader::Record& record) override;
  void after(const reader::Record& record) override;
  void end(const reader::Trace& trace, reader::Replay& replay, int64_t from_ns,
           int64_t until_ns, const std::vector<reader::LiveThread>& threads) override;
  // Says what --where left out, and which of its conditions no event could meet. To be
  // called after the last tick.
  void finish();

 private:
  const OutputFormat format_;
  const DumpFilter& filter_;
  reader::EventFilter events_;
  // Of its conditions, as far as events were defined by the last tick; empty once there
  // was none.
  std::optional<std::string> problem_;
  int64_t last_ns_ = 0;  // of the last record
  reader::Output& output_;
  reader::EffectListener listener_;
  // Of the tick.
  const reader::Definitions* definitions_ = nullptr;
  reader::Replay* replay_ = nullptr;
  std::unique_ptr<reader::RecordDescriber> describer_;
  std::unique_ptr<reader::DumpPrinter> printer_;
};

}  // namespace arctrace::cli
