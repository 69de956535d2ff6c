// The model behind the page of a trace: what its index tells at once, what a pass over
// all of it finds, and what is read for a range of time when somebody asks for it.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reader/streams/json_writer.hpp"
#include "reader/streams/record_describer.hpp"
#include "reader/symbols/symbolizer.hpp"
#include "reader/trace/trace.hpp"
#include "reader/trace/trace_files.hpp"
#include "reader/ui/model/call_detail.hpp"
#include "reader/ui/model/early_page.hpp"
#include "reader/ui/model/page_json.hpp"
#include "reader/ui/model/trace_ranges.hpp"
#include "reader/ui/model/whole_pass.hpp"

namespace arctrace::reader {

// Answers in JSON: objects, each with function_count and lane_count, the numbers of
// functions and lanes that the page has by then. Until the pass is done and take_whole()
// was called, lanes and functions have other numbers than after that, and answers about
// the whole time are kUnavailable. A buffer has no answers before that.
//
// Memory is bounded, whatever the size of the trace: by kItemsMax stretches of the time
// line for the whole, by those of TraceRanges, and by the numbers of blocks, functions,
// stacks and threads. Not thread-safe.
class TraceModel {
 public:
  static constexpr size_t kItemsMax = size_t{3} << 20;
  // This range reads no records: the trace is opened to learn what its index and its
  // definitions tell.
  static constexpr TimeRange kNoTime = {INT64_MIN, INT64_MIN};

  // `files` must outlive this object. `known`: one of them, opened for kNoTime. `stops`:
  // whether every pass shall end; asked in several threads.
  TraceModel(const TraceFiles& files, Trace known, const SymbolOptions& symbols,
             const TraceFiles::Stops& stops);

  // Begins the pass, in a thread that has the rights of the caller's. To be called once,
  // before all else.
  void start() { pass_.start(); }
  bool is_reading() const { return !pass_.is_done(); }
  // Why the pass ended without a result.
  absl::Status problem() const;
  uint64_t records_read() const { return pass_.records(); }
  // Between 0 and 1; 0 for a buffer, of which it is not known.
  double share_read() const;

  // To be called before each of the functions below. Once the pass has a result, takes it
  // for the page.
  void take_whole();
  // Whether answers about the whole time are available.
  bool is_whole() const { return is_whole_; }

  // is_whole, records, share, seconds_left (null: not known), problem (null: none).
  std::string progress() const;
  // The first content of the page: write_facts_json(), PageSummary's
  // crash and other_crashes, write_lanes_json(), write_names_json(); before it is whole,
  // is_whole (false), and the known parts of these.
  std::string summary() const;
  // Arrays "functions" and "lanes" as in summary(), from these numbers on.
  std::string names(size_t function, size_t lane) const;
  // Object with from_ns, until_ns, pixel_ns (of the density buckets), is_exact, and
  // lanes: an array of [number, rows]. `pixel_ns` is at least 1. If it is shorter than
  // the grain of the whole, `exact` says whether the range may be read again. Before the
  // page is whole, it has calls only of ranges that are read; for others, or if
  // is_too_long says that the range has too many records, lanes are [number, [],
  // density].
  absl::StatusOr<std::string> timeline(Times times, uint64_t pixel_ns,
                                       const std::vector<uint32_t>& lanes, bool exact);
  // The totals of calls in a range of time; null: of the whole.
  absl::StatusOr<std::string> totals(const Times* times);
  absl::StatusOr<std::string> flame(const Times* times, Grouping grouping);
  absl::StatusOr<std::string> locks(const Times* times);
  absl::StatusOr<std::string> processes(const Times* times);
  // Object with slowest, the slowest calls of a function of the page
  // (write_slowest_json()).
  absl::StatusOr<std::string> slowest(FunctionId function, const Times* times);
  // kNotFound: the trace does not know what woke threads.
  absl::StatusOr<std::string> critical_path(const Times* times);
  // Object with args of the call of a lane at a level that began at `start_ns`; empty if
  // none are recorded. It reads little of the trace. kNotFound: there is no such call.
  absl::StatusOr<std::string> args(uint32_t lane, uint32_t level, int64_t start_ns);
  // The call of a lane at a level that began at `start_ns`. kNotFound: there is none.
  absl::StatusOr<std::string> call(uint32_t lane, uint32_t level, int64_t start_ns,
                                   int64_t stop_ns);
  // The first calls whose args or retval contain `text`, in the order of their ends.
  absl::StatusOr<std::string> search(const std::string& text);

  // The source of a function of the page: file, line, first, and text, the lines from
  // `first` on if the file is on this machine. An empty object: its debug data does not
  // tell. kNotFound: there is no such function.
  absl::StatusOr<std::string> source(FunctionId function);

 private:
  struct Sums {
    Replay& replay;
    PageParts& parts;
    std::span<const FunctionId> ids;
  };

  FunctionResolver& resolver() const;
  std::span<const Lane> lanes() const;
  template <class Write>
  std::string object(const Write& write) const;
  // The sums of a range, or of the whole.
  absl::StatusOr<Sums> sums_of(const Times* times);
  // Returns an object with what `write` adds of the sums of a range, or of the whole.
  template <class Write>
  absl::StatusOr<std::string> object_of(const Times* times, const Write& write);
  std::optional<uint32_t> lane_number(const Lane& like) const;
  absl::StatusOr<std::string> read_call(
      const CallKey& key, const TimeRange& range,
      absl::FunctionRef<void(const CallDetail&, std::span<const FunctionId>, JsonWriter&)>
          write);
  absl::StatusOr<std::string> early_timeline(Times times, uint64_t pixel_ns,
                                             const std::vector<uint32_t>& lanes,
                                             bool exact);
  TimeRow exact_row(const Lane& lane, uint32_t level, TraceRange& detail, Times times,
                    uint64_t pixel_ns) const;
  absl::Status not_yet(const char* what) const;

  const TraceFiles& files_;
  const SymbolOptions symbols_;
  const TraceFiles::Stops stops_;
  Trace known_;
  mutable WholePass pass_;
  bool is_whole_ = false;
  std::unique_ptr<TraceRanges> ranges_;
  mutable std::optional<EarlyPage> early_;
};

}  // namespace arctrace::reader
