#include "reader/trace/file_totals.hpp"

#include <algorithm>
#include <limits>

#include "src/base/untrusted_bytes.hpp"

namespace arctrace::reader {
namespace {

uint64_t above(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

void add_up_to_max(uint64_t& sum, uint64_t count) {
  if (__builtin_add_overflow(sum, count, &sum))
    sum = std::numeric_limits<uint64_t>::max();
}

}  // namespace

void FileTotals::add_untrusted(const RawRecord& record, uint64_t chunk) {
  const auto body = load_part_untrusted<arctrace_files_body>(record.body);
  if (series_.empty() || series_.back().begin_ticks != body.begin_ticks) {
    series_.emplace_back().begin_ticks = body.begin_ticks;
    covered_ = {};
    covered_ticks_ = body.begin_ticks;
    is_amid_file_ = false;
  }
  Counts counts{body.records, body.kernel, {}};
  for (size_t cause = 0; cause < counts.lost.size(); ++cause) {
    counts.lost[cause] = body.lost[cause];
  }
  if (body.what == ARCTRACE_FILES_BEGIN) begin_file(body, counts, record.ticks, chunk);
  if (body.what == ARCTRACE_FILES_BEGIN || body.what == ARCTRACE_FILES_END) {
    covered_ = counts;
    covered_ticks_ = record.ticks;
    is_amid_file_ = body.what == ARCTRACE_FILES_BEGIN;
  }
  Series& series = series_.back();
  series.is_resumed |= (body.flags & ARCTRACE_FILES_RESUMED) != 0;
  series.removed = {body.removed_records, body.removed_kernel, {}};
  series.removed_ticks = body.removed_ticks;
  removed_files_ = body.removed_files;
}

// Of a file that was cut off it is not known what it had besides what is there.
void FileTotals::begin_file(const arctrace_files_body& body, const Counts& counts,
                            uint64_t ticks, uint64_t chunk) {
  files_.push_back({chunk});
  if (first_ == 0) first_ = body.number;
  last_ = body.number;
  if (is_amid_file_) return;
  series_.back().stretches.push_back(
      {files_.size() - 1, covered_ticks_, ticks, covered_, counts});
}

void FileTotals::add_block(uint64_t chunk, uint64_t first_ticks) {
  const auto after =
      std::upper_bound(files_.begin(), files_.end(), chunk,
                       [](uint64_t at, const File& file) { return at < file.chunk; });
  if (after == files_.begin()) return;
  File& file = *(after - 1);
  if (file.earliest_ticks == UINT64_MAX) file.latest_ticks = first_ticks;
  file.earliest_ticks = std::min(file.earliest_ticks, first_ticks);
  file.latest_ticks = std::max(file.latest_ticks, first_ticks);
}

std::vector<MissingFiles> FileTotals::missing(const ClockMap& clock) const {
  std::vector<MissingFiles> missing;
  for (const Series& series : series_) {
    for (const Stretch& stretch : series.stretches) {
      append_missing(series, stretch, clock, missing);
    }
  }
  return missing;
}

// The files that were removed are the oldest: what is missing up to their end was theirs.
void FileTotals::append_missing(const Series& series, const Stretch& stretch,
                                const ClockMap& clock,
                                std::vector<MissingFiles>& missing) const {
  const auto removed_of = [](uint64_t from, uint64_t to, uint64_t removed) {
    return above(std::min(to, removed), from);
  };
  const Counts& from = stretch.from;
  const Counts& to = stretch.to;
  const uint64_t to_ticks =
      std::min(stretch.to_ticks, files_[stretch.file].earliest_ticks);
  const bool is_first = stretch.file == 0 || stretch.from_ticks == series.begin_ticks;
  const uint64_t before_ticks =
      is_first ? UINT64_MAX : files_[stretch.file - 1].latest_ticks;
  const uint64_t from_ticks = std::min({stretch.from_ticks, before_ticks, to_ticks});
  MissingFiles removed{
      .from_ns = clock.to_ns(from_ticks),
      .to_ns = clock.to_ns(to_ticks),
      .records = removed_of(from.records, to.records, series.removed.records),
      .kernel_records = removed_of(from.kernel, to.kernel, series.removed.kernel),
      .is_removed = true};
  MissingFiles other = removed;
  other.is_removed = false;
  other.records = above(above(to.records, from.records), removed.records);
  other.kernel_records = above(above(to.kernel, from.kernel), removed.kernel_records);
  if (removed.all_records() != 0 && other.all_records() != 0) {
    removed.to_ns = std::clamp(clock.to_ns(series.removed_ticks), removed.from_ns,
                               std::max(removed.from_ns, removed.to_ns));
    other.from_ns = removed.to_ns;
  }
  if (removed.all_records() != 0) missing.push_back(removed);
  if (other.all_records() != 0) missing.push_back(other);
}

void FileTotals::describe(RecordingFiles& files) const {
  files.first = first_;
  files.last = last_;
  files.removed = removed_files_;
  files.goes_on = !series_.empty() && !is_amid_file_;
}

void FileTotals::settle(std::span<const MissingFiles> missing, const TimeRange& range,
                        Summary& summary) const {
  if (series_.empty()) return;
  uint64_t removed_records = 0;
  uint64_t elsewhere = 0;
  for (const MissingFiles& files : missing) {
    if (files.from_ns >= range.until_ns || files.to_ns < range.from_ns) continue;
    if (!files.is_removed) {
      add_up_to_max(elsewhere, files.records);
      continue;
    }
    add_up_to_max(removed_records, files.records);
    for (uint64_t* sum : {&summary.lost, &summary.lost_by_cause[ARCTRACE_LOST_REMOVED]}) {
      add_up_to_max(*sum, files.records);
      add_up_to_max(*sum, files.kernel_records);
    }
  }
  // Another collector's files may have some, which these counts do not know.
  const bool is_resumed =
      std::any_of(series_.begin(), series_.end(),
                  [](const Series& series) { return series.is_resumed; });
  summary.elsewhere = is_resumed
                          ? std::max(above(summary.elsewhere, removed_records), elsewhere)
                          : elsewhere;
  if (!range.is_all()) return;
  for (const Series& series : series_) {
    for (const Stretch& stretch : series.stretches) {
      for (size_t cause = 0; cause < stretch.to.lost.size(); ++cause) {
        const uint64_t more = above(stretch.to.lost[cause], stretch.from.lost[cause]);
        add_up_to_max(summary.lost, more);
        add_up_to_max(summary.lost_by_cause[cause], more);
      }
    }
  }
}

}  // namespace arctrace::reader
