// The k-way merge of sorted sources by time.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "reader/trace/block_index.hpp"
#include "reader/trace/clock_map.hpp"
#include "reader/trace/emitter.hpp"

namespace arctrace::reader {

// Records in order of ticks. Sources are told apart by `order`, which also decides
// between records of one moment.
class RecordSource {
 public:
  enum class Result : uint8_t { kMore, kEnd, kStopped };

  RecordSource(uint64_t key, uint64_t order) : key_(key), order_(order) {}
  RecordSource(const RecordSource&) = delete;
  RecordSource& operator=(const RecordSource&) = delete;
  virtual ~RecordSource() = default;

  // Ticks of its next record, or a lower bound.
  uint64_t key() const { return key_; }
  uint64_t order() const { return order_; }

  // Emits records while they come before `limit`: the key of the next best source, whose
  // own records go first at that key if `limit_first`. At least updates key(), if it was
  // only a lower bound. Error: the input cannot be read.
  virtual absl::StatusOr<Result> drain(uint64_t limit, bool limit_first,
                                       Emitter& emitter) = 0;

 protected:
  // Whether a record at `ticks` may be emitted now.
  static bool comes_before(uint64_t ticks, uint64_t limit, bool limit_first) {
    return ticks < limit || (ticks == limit && !limit_first);
  }

  uint64_t key_;
  uint64_t order_;
};

// Merges until all sources are at their end or the sink wants no more.
absl::Status merge(std::vector<std::unique_ptr<RecordSource>> sources, Emitter& emitter);

// The source of one writer's exclusive blocks, sorted by serial. `blocks` and the rest
// must outlive it.
std::unique_ptr<RecordSource> exclusive_source(Input& input,
                                               std::span<const BlockRef> blocks,
                                               ThreadIndex thread, uint64_t order,
                                               FindingLog& findings);

// The source of one block of full form. `first_ticks`: of its earliest record.
// `clock` must outlive it. `may_follow_gap`: other blocks may have been overwritten, so
// that a STACK need not agree with the records before it.
std::unique_ptr<RecordSource> shared_source(Input& input, const BlockRef& block,
                                            uint64_t first_ticks, uint64_t order,
                                            const ClockMap& clock, bool may_follow_gap,
                                            FindingLog& findings);

}  // namespace arctrace::reader
