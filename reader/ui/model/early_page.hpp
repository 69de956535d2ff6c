// The page's view of a trace before all of it has been read: what its index and its
// definitions tell, and ranges that are read for the page.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "reader/analysis/block_times.hpp"
#include "reader/replay/resolver.hpp"
#include "reader/ui/model/page_json.hpp"
#include "reader/ui/model/trace_ranges.hpp"

namespace arctrace::reader {

class EarlyPage {
 public:
  // A range is read for the time line if it has at most so many bytes of records, which
  // takes some tenths of a second.
  static constexpr uint64_t kRangeBytesMax = uint64_t{32} << 20;

  // `ranges` must outlive this object, and has the trace.
  explicit EarlyPage(TraceRanges& ranges);

  const BlockTimes& blocks() const { return blocks_; }
  // The functions of the ranges that were read.
  Functions& functions() { return resolver_.mutable_functions(); }
  FunctionResolver& resolver() { return resolver_; }
  // One lane for each thread that wrote records, then the lanes that were met in ranges:
  // of coroutines, and of calls that were entered before tracing began.
  std::span<const Lane> lanes() const { return lanes_; }
  // Returns the number of such a lane; nullopt: it has not been met.
  std::optional<uint32_t> find(const Lane& like) const;

  // Members of the object that is open: those of write_facts_json() that are known, and
  // bytes.
  void write_facts_json(JsonWriter& json) const;
  // Writes the lanes from `first` on, as elements of the array that is open: as
  // write_lanes_json() without what is not known, and with bytes.
  void write_lanes_json(size_t first, JsonWriter& json) const;
  // Writes the same members as TraceModel::timeline().
  absl::Status write_timeline_json(Times times, uint64_t pixel_ns,
                                   std::span<const uint32_t> lanes, bool exact,
                                   JsonWriter& json);

 private:
  using Key = std::tuple<ThreadIndex, uint32_t, bool>;

  void add_lane(ThreadIndex thread, uint32_t coroutine, bool is_adopted);
  absl::StatusOr<TraceRange*> read_range(Times times, uint64_t pixel_ns);
  void write_rows(const Lane& lane, TraceRange& range, Times times, uint64_t pixel_ns,
                  JsonWriter& json) const;
  void write_density(const Lane& lane, Times times, uint64_t pixel_ns,
                     JsonWriter& json) const;

  TraceRanges& ranges_;
  const Definitions& definitions_;
  const BlockTimes blocks_;
  FunctionResolver resolver_;
  std::vector<Lane> lanes_;
  absl::flat_hash_map<Key, uint32_t> lane_numbers_;
};

}  // namespace arctrace::reader
