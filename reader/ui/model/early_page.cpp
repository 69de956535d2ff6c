#include "reader/ui/model/early_page.hpp"

#include <algorithm>

#include "reader/render/labels.hpp"
#include "reader/render/session_text.hpp"
#include "reader/report/summary_lines.hpp"
#include "reader/trace/process_identities.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

// The subtraction is unsigned, so that the times of a hostile trace wrap instead of
// overflowing.
int64_t difference_ns(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

}  // namespace

EarlyPage::EarlyPage(TraceRanges& ranges)
    : ranges_(ranges),
      definitions_(ranges.trace().definitions()),
      blocks_(ranges.trace()),
      resolver_(definitions_, &ranges.symbolizer()) {
  for (ThreadIndex i = 0; i < definitions_.threads().size(); ++i) {
    if (!definitions_.threads()[i].of_kernel()) add_lane(i, 0, false);
  }
}

void EarlyPage::add_lane(ThreadIndex thread, uint32_t coroutine, bool is_adopted) {
  const bool is_new = lane_numbers_
                          .try_emplace(Key{thread, coroutine, is_adopted},
                                       static_cast<uint32_t>(lanes_.size()))
                          .second;
  if (!is_new) return;
  Lane& lane = lanes_.emplace_back();
  lane.thread = thread;
  lane.coroutine = coroutine;
  lane.is_adopted = is_adopted;
}

std::optional<uint32_t> EarlyPage::find(const Lane& like) const {
  const auto found =
      lane_numbers_.find(Key{like.thread, like.coroutine, like.is_adopted});
  if (found == lane_numbers_.end()) return std::nullopt;
  return found->second;
}

void EarlyPage::write_facts_json(JsonWriter& json) const {
  const Session& session = ranges_.trace().session();
  const TimeRange times = blocks_.times();
  json.member("path", safe_name(session.path));
  json.member("command", safe_text(command_line_text(first_command(definitions_))));
  json.member("end", end_text(&session));
  json.member("from_ns", times.from_ns);
  json.member("until_ns", times.until_ns);
  json.member("has_cpu", definitions_.has_dispatches());
  json.member("has_wake_ups", definitions_.has_dispatches() && !session.has_perf_records);
  std::vector<ThreadIndex> threads;
  for (ThreadIndex i = 0; i < definitions_.threads().size(); ++i) {
    if (!definitions_.threads()[i].of_kernel()) threads.push_back(i);
  }
  write_counts_json(count_joined(definitions_, threads), json);
  json.member("bytes", blocks_.bytes());
  json.key("facts").begin_array();
  for (const std::string& line : session_facts(session)) json.value(safe_text(line));
  json.end();
}

void EarlyPage::write_lanes_json(size_t first, JsonWriter& json) const {
  for (size_t i = first; i < lanes_.size(); ++i) {
    json.begin_object();
    write_lane_name_json(definitions_, lanes_[i], json);
    json.member("levels", kStateLevels + 1);
    json.member("bytes", lanes_[i].coroutine == 0 && !lanes_[i].is_adopted
                             ? blocks_.bytes_of(lanes_[i].thread)
                             : 0);
    json.end();
  }
}

// Reads the range with some more time around it, if that is not too much, so that the
// next step to either side needs no new read.
absl::StatusOr<TraceRange*> EarlyPage::read_range(Times times, uint64_t pixel_ns) {
  const auto bytes_in = [&](Times of) {
    return blocks_.bytes_in({of.from_ns, of.until_ns});
  };
  if (bytes_in(times) > kRangeBytesMax) return nullptr;
  Times wide = around(times);
  if (bytes_in(wide) > kRangeBytesMax) wide = times;
  absl::StatusOr<TraceRange*> range =
      ranges_.detail_of(times, wide, pixel_ns, functions());
  if (!range.ok()) return range;
  for (const Lane& lane : (*range)->timeline().lanes()) {
    add_lane(lane.thread, lane.coroutine, lane.is_adopted);
  }
  return range;
}

absl::Status EarlyPage::write_timeline_json(Times times, uint64_t pixel_ns,
                                            std::span<const uint32_t> lanes, bool exact,
                                            JsonWriter& json) {
  TraceRange* range = nullptr;
  if (exact) {
    const absl::StatusOr<TraceRange*> read = read_range(times, pixel_ns);
    if (!read.ok()) return read.status();
    range = *read;
  }
  if (range != nullptr) {
    pixel_ns = std::max(pixel_ns, range->timeline().rows().grain_ns());
  }
  json.member("from_ns", times.from_ns);
  json.member("until_ns", times.until_ns);
  json.member("pixel_ns", pixel_ns);
  json.member("is_exact", range != nullptr);
  json.member("is_too_long", exact && range == nullptr);
  json.key("lanes").begin_array();
  for (const uint32_t number : lanes) {
    if (number >= lanes_.size()) continue;
    json.begin_array();
    json.value(number);
    if (range != nullptr) {
      write_rows(lanes_[number], *range, times, pixel_ns, json);
    } else {
      json.begin_array();
      json.end();
      write_density(lanes_[number], times, pixel_ns, json);
    }
    json.end();
  }
  json.end();
  return absl::OkStatus();
}

void EarlyPage::write_rows(const Lane& lane, TraceRange& range, Times times,
                           uint64_t pixel_ns, JsonWriter& json) const {
  json.begin_array();
  const Lane* found = range.timeline().find(lane);
  for (uint32_t level = 0; found != nullptr && level < found->levels; ++level) {
    TimeRow row = seen_of_row(range.timeline().row(*found, level), times.from_ns,
                              times.until_ns, pixel_ns);
    if (row.stretches.empty() && row.buckets.empty()) continue;
    if (level >= kStateLevels) renumber(row, range.ids());
    write_row_json(level, row, times.from_ns, json);
  }
  json.end();
}

// Writes three numbers for each piece: its begin, relative to that of the one before it,
// its duration, and the bytes of records in it.
void EarlyPage::write_density(const Lane& lane, Times times, uint64_t pixel_ns,
                              JsonWriter& json) const {
  json.begin_array();
  int64_t last_ns = times.from_ns;
  if (lane.coroutine == 0 && !lane.is_adopted) {
    for (const WrittenPiece& piece :
         blocks_.pieces(lane.thread, {times.from_ns, times.until_ns}, pixel_ns)) {
      json.value(difference_ns(piece.from_ns, last_ns));
      json.value(difference_ns(piece.until_ns, piece.from_ns));
      json.value(piece.bytes);
      last_ns = piece.from_ns;
    }
  }
  json.end();
}

}  // namespace arctrace::reader
