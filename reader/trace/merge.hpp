// The k-way merge of sorted sources by time.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "reader/trace/emitter.hpp"

namespace arctrace::reader {

// Records in order of ticks. Each source has an `order` of its own, which decides between
// records of one moment.
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

  // Emits records while they come before `limit`, which is the key of the next best
  // source; that source's records go first at this key if `limit_first`. If key() was
  // only a lower bound, it is exact after the call. Error: the input cannot be read.
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

}  // namespace arctrace::reader
