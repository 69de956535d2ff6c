#include "reader/analysis/block_times.hpp"

#include <algorithm>
#include <utility>

namespace arctrace::reader {
namespace {

double span_ns(int64_t from_ns, int64_t until_ns) {
  return static_cast<double>(until_ns) - static_cast<double>(from_ns);
}

// Returns how many of the piece's bytes are in the range.
uint64_t bytes_within(const WrittenPiece& piece, const TimeRange& range) {
  const int64_t from_ns = std::max(piece.from_ns, range.from_ns);
  const int64_t until_ns = std::min(piece.until_ns, range.until_ns);
  if (from_ns > until_ns) return 0;
  if (piece.from_ns == piece.until_ns) return piece.bytes;
  return static_cast<uint64_t>(static_cast<double>(piece.bytes) *
                               span_ns(from_ns, until_ns) /
                               span_ns(piece.from_ns, piece.until_ns));
}

// The first piece that does not end before a moment.
auto first_not_before(const std::vector<WrittenPiece>& pieces, int64_t time_ns) {
  return std::partition_point(
      pieces.begin(), pieces.end(),
      [&](const WrittenPiece& piece) { return piece.until_ns < time_ns; });
}

}  // namespace

BlockTimes::BlockTimes(const Trace& trace) {
  const Definitions& definitions = trace.definitions();
  const ClockMap& clock = trace.clock();
  absl::flat_hash_map<ThreadIndex, std::vector<WrittenPiece>> found;
  int64_t from_ns = INT64_MAX, until_ns = INT64_MIN, written_ns = INT64_MIN;
  for (const BlockRef& block : trace.blocks()) {
    if (block.kind != BlockRef::Kind::kExclusive &&
        block.kind != BlockRef::Kind::kShared) {
      continue;
    }
    const ThreadIndex thread = block.kind == BlockRef::Kind::kExclusive
                                   ? definitions.find_thread(block.writer)
                                   : kNoIndex;
    // Of some shared blocks, only the time at which they were written out is known; of
    // those in a buffer, not even that.
    const bool has_begin = block.base_ticks != 0 && !block.of_kernel();
    if (!has_begin && block.written_ticks == 0) continue;
    const uint64_t begin = has_begin ? block.base_ticks : block.written_ticks;
    const uint64_t end = std::max(begin, block.written_ticks);
    const WrittenPiece piece{clock.to_ns(begin), clock.to_ns(end),
                             block.size - std::min(block.size, block.records_offset())};
    found[thread].push_back(piece);
    from_ns = std::min(from_ns, piece.from_ns);
    written_ns = std::max(written_ns, piece.until_ns);
  }
  bool is_end_known = true;
  for (ThreadIndex i = 0; i < definitions.threads().size(); ++i) {
    if (definitions.threads()[i].of_kernel()) continue;
    from_ns = std::min(from_ns, definitions.begin_ns(i));
    const int64_t end_ns = definitions.life_end_ns(i);
    is_end_known &= end_ns != INT64_MAX;
    if (end_ns != INT64_MAX) until_ns = std::max(until_ns, end_ns);
  }
  // Blocks are written out some time after their last records.
  if (!is_end_known || until_ns == INT64_MIN) until_ns = std::max(until_ns, written_ns);
  times_ = from_ns <= until_ns ? TimeRange{from_ns, until_ns} : TimeRange{0, 0};
  for (auto& [thread, pieces] : found) {
    const int64_t end_ns =
        thread == kNoIndex ? times_.until_ns
                           : std::min(times_.until_ns, definitions.life_end_ns(thread));
    for (WrittenPiece& piece : pieces) {
      piece.until_ns = std::max(piece.from_ns, std::min(piece.until_ns, end_ns));
    }
    add(thread, std::move(pieces));
  }
}

// A block's records end where the next block's begin, at the latest.
void BlockTimes::add(ThreadIndex thread, std::vector<WrittenPiece> pieces) {
  std::sort(
      pieces.begin(), pieces.end(),
      [](const WrittenPiece& a, const WrittenPiece& b) { return a.from_ns < b.from_ns; });
  Written& written = written_[thread];
  for (size_t i = 0; i < pieces.size(); ++i) {
    WrittenPiece& piece = pieces[i];
    if (i + 1 < pieces.size()) {
      piece.until_ns = std::min(piece.until_ns, pieces[i + 1].from_ns);
    }
    written.bytes += piece.bytes;
  }
  bytes_ += written.bytes;
  written.pieces = std::move(pieces);
}

uint64_t BlockTimes::bytes_of(ThreadIndex thread) const {
  const auto found = written_.find(thread);
  return found == written_.end() ? 0 : found->second.bytes;
}

uint64_t BlockTimes::bytes_in(const TimeRange& range) const {
  uint64_t bytes = 0;
  for (const auto& [thread, written] : written_) {
    for (auto piece = first_not_before(written.pieces, range.from_ns);
         piece != written.pieces.end() && piece->from_ns < range.until_ns; ++piece) {
      bytes += bytes_within(*piece, range);
    }
  }
  return bytes;
}

std::vector<WrittenPiece> BlockTimes::pieces(ThreadIndex thread, const TimeRange& range,
                                             uint64_t grain_ns) const {
  std::vector<WrittenPiece> made;
  const auto found = written_.find(thread);
  if (found == written_.end()) return made;
  const std::vector<WrittenPiece>& pieces = found->second.pieces;
  for (auto piece = first_not_before(pieces, range.from_ns);
       piece != pieces.end() && piece->from_ns < range.until_ns; ++piece) {
    const auto grain = static_cast<double>(grain_ns);
    // A thread that paused between two blocks wrote nothing then.
    const bool goes_on = !made.empty() &&
                         span_ns(made.back().until_ns, piece->from_ns) < grain &&
                         span_ns(made.back().from_ns, piece->until_ns) <= grain;
    if (!goes_on) {
      made.push_back(*piece);
      continue;
    }
    made.back().until_ns = piece->until_ns;
    made.back().bytes += piece->bytes;
  }
  return made;
}

double BlockTimes::share_before(int64_t time_ns) const {
  if (bytes_ == 0) return 0;
  return std::min(1.0, static_cast<double>(bytes_in({INT64_MIN, time_ns})) /
                           static_cast<double>(bytes_));
}

}  // namespace arctrace::reader
