// Compares the counts of writers, slots and files with the records that were read.
#include "reader/trace/totals.hpp"

#include <absl/strings/str_cat.h>
#include <arctrace/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <optional>
#include <span>

#include "reader/trace/block_index.hpp"
#include "reader/trace/record.hpp"
#include "src/base/untrusted_bytes.hpp"

namespace arctrace::reader {

// ---- What writers counted ---------------------------------------------------------

void SessionTotals::add_untrusted(const RawRecord& record) {
  const auto totals = load_part_untrusted<arctrace_totals_body>(record.body);
  written_[record.writer] = totals.written;
  if (record.writer != ARCTRACE_WRITER_COLLECTOR) {
    uint64_t& lost = lost_by_writer_[record.writer];
    lost = 0;
    // The loop uses indices, because the body is aligned to 4 bytes only.
    for (size_t cause = 0; cause < lost_.size(); ++cause) lost += totals.lost[cause];
    return;
  }
  for (size_t cause = 0; cause < lost_.size(); ++cause) {
    lost_[cause] = totals.lost[cause];
  }
  filtered_out_ = read_filtered_out(BodyReader(record.body));
}

void SessionTotals::add_slots(const BufferState& buffer) {
  for (const BufferState::Slot& slot : buffer.slots) {
    if (slot.writer != 0) written_[slot.writer] = slot.written;
    if (slot.writer != 0 && buffer.each_slot_has_one_owner) {
      lost_by_writer_[slot.writer] =
          std::accumulate(slot.lost.begin(), slot.lost.end(), uint64_t{0});
    }
    written_[ARCTRACE_WRITER_COLLECTOR] += slot.written_all;
    filtered_out_ += slot.filtered_out;
    for (size_t cause = 0; cause < lost_.size(); ++cause) {
      lost_[cause] += slot.lost[cause];
    }
  }
  for (size_t cause = 0; cause < lost_.size(); ++cause) {
    lost_[cause] += buffer.session_lost[cause];
  }
  filtered_out_ += buffer.filtered_out;
}

std::optional<uint64_t> SessionTotals::written_by(uint32_t writer) const {
  const auto counted = written_.find(writer);
  if (counted == written_.end()) return std::nullopt;
  return counted->second;
}

void SessionTotals::account(const Session& session, const Definitions& definitions,
                            const WriterOutcomes& fates, const Emitter& emitter,
                            bool is_in_part_elsewhere, Summary& summary,
                            FindingLog& findings) const {
  if (session.mode == ARCTRACE_MODE_OVERWRITE) {
    add_overwritten(definitions, emitter, summary);
  } else if (!session.raw && session.finished &&
             (!session.resumed || is_in_part_elsewhere)) {
    account_retained(definitions, fates, emitter, is_in_part_elsewhere, summary,
                     findings);
  }
}

void SessionTotals::add_overwritten(const Definitions& definitions,
                                    const Emitter& emitter, Summary& summary) const {
  const auto missing = [](uint64_t counted, uint64_t found) {
    return counted > found ? counted - found : 0;
  };
  for (const auto& [writer, count] : written_) {
    if (writer == ARCTRACE_WRITER_COLLECTOR) {
      summary.overwritten =
          missing(count, summary.records + summary.torn + summary.unfinished +
                             emitter.user_records_lost_by_file());
      continue;
    }
    const ThreadIndex thread = definitions.find_thread(writer);
    if (thread >= summary.overwritten_by_thread.size()) continue;
    summary.overwritten_by_thread[thread] = missing(
        count, summary.records_by_thread[thread] + emitter.in_progress_of(thread));
  }
  for (const auto& [writer, count] : lost_by_writer_) {
    const ThreadIndex thread = definitions.find_thread(writer);
    if (thread >= summary.lost_by_thread.size()) continue;
    summary.lost_by_thread[thread] = std::max(summary.lost_by_thread[thread], count);
  }
  for (size_t cause = 0; cause < lost_.size(); ++cause) {
    const uint64_t more = missing(lost_[cause], summary.lost_by_cause[cause]);
    summary.lost_by_cause[cause] += more;
    summary.lost += more;
  }
}

void SessionTotals::account_retained(const Definitions& definitions,
                                     const WriterOutcomes& fates, const Emitter& emitter,
                                     bool is_in_part_elsewhere, Summary& summary,
                                     FindingLog& findings) const {
  const std::optional<uint64_t> counted = written_by(ARCTRACE_WRITER_COLLECTOR);
  if (!counted.has_value()) return;
  // Each writer that died may have counted a record that it did not begin.
  const auto died = static_cast<uint64_t>(std::count_if(
      fates.begin(), fates.end(),
      [](const auto& fate) { return fate.second == WriterOutcome::kDead; }));
  const uint64_t found = summary.records + summary.torn + summary.unfinished +
                         emitter.user_records_lost_by_file();
  if (found + died >= *counted) return;
  if (!is_in_part_elsewhere) {
    findings.add(Rule::kTotals, absl::StrCat(*counted, " counted, ",
                                             *counted - found - died, " missing"));
    return;
  }
  summary.elsewhere = *counted - found;
  for (const auto& [writer, count] : written_) {
    const ThreadIndex thread = definitions.find_thread(writer);
    if (thread >= summary.elsewhere_by_thread.size()) continue;
    const auto fate = fates.find(writer);
    const bool has_died = fate != fates.end() && fate->second == WriterOutcome::kDead;
    const uint64_t has =
        summary.records_by_thread[thread] + emitter.in_progress_of(thread);
    if (count > has + (has_died ? 1 : 0)) {
      summary.elsewhere_by_thread[thread] = count - has;
    }
  }
}

// ---- The slots of a buffer --------------------------------------------------------

namespace {

struct Losses {
  std::span<const uint64_t> lost, reported;  // by cause
  uint32_t writer = 0;
  uint32_t flags = 0;  // ARCTRACE_LOST_*
};

bool emit_losses(const Losses& losses, uint64_t ticks, const BlockRef& place,
                 Emitter& emitter) {
  for (uint32_t cause = 0; cause < losses.lost.size(); ++cause) {
    if (losses.lost[cause] <= losses.reported[cause]) continue;
    const arctrace_lost_body body{.cause = cause,
                                  .flags = losses.flags | ARCTRACE_LOST_RESIDUAL,
                                  .count = losses.lost[cause] - losses.reported[cause],
                                  .since_ticks = 0};
    RawRecord record;
    record.ticks = ticks;  // the emitter makes it no earlier than the last
    record.writer = losses.writer;
    record.type = ARCTRACE_TYPE_LOST;
    record.body = std::as_bytes(std::span(&body, 1));
    if (!emitter.emit(record, emitter.thread_of(losses.writer), place, false)) {
      return false;
    }
  }
  return true;
}

}  // namespace

void resolve_by_slots(const BufferState& buffer, Session& session,
                      Definitions& definitions, WriterOutcomes& fates) {
  for (const Thread& thread : definitions.threads()) {
    fates[thread.writer] = WriterOutcome::kDead;
  }
  for (const BufferState::Slot& slot : buffer.slots) {
    if (slot.alive) fates[slot.writer] = WriterOutcome::kAlive;
  }
  for (ThreadIndex i = 0; i < definitions.threads().size(); ++i) {
    Thread& thread = *definitions.mutable_thread(i);
    thread.ended_unseen =
        !thread.of_kernel() && fates[thread.writer] == WriterOutcome::kDead;
  }
  // The header tells how much the collector has pinned.
  if (!buffer.collector_alive) session.pinned_bytes = 0;
  session.pinned_bytes = std::max(session.pinned_bytes, buffer.pinned_bytes);
  session.processes = buffer.processes;
  session.threads = buffer.threads;
}

void drop_reported_calls(const SessionTotals& totals, Definitions& definitions) {
  for (ThreadIndex i = 0; i < definitions.threads().size(); ++i) {
    Thread& thread = *definitions.mutable_thread(i);
    if (totals.written_by(thread.writer) != thread.waiting_since_written) {
      thread.waiting.clear();
    }
  }
}

bool emit_unreported_losses(const BufferState& buffer, const Session& session,
                            uint64_t chunk, Emitter& emitter) {
  BlockRef place;
  place.kind = BlockRef::Kind::kCollector;
  place.chunk = chunk;
  for (const BufferState::Slot& slot : buffer.slots) {
    const Losses losses{slot.lost, slot.reported, slot.writer, 0};
    if (!emit_losses(losses, session.start_ticks, place, emitter)) return false;
  }
  const std::array<uint64_t, ARCTRACE_LOST_CAUSES> nothing{};
  return emit_losses(
      {buffer.session_lost, nothing, ARCTRACE_WRITER_COLLECTOR, ARCTRACE_LOST_SESSION},
      session.start_ticks, place, emitter);
}

// ---- The files of a recording -----------------------------------------------------

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

// If the file was cut off, it is not known how much more it had.
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

// The files that were removed are the oldest: records that are missing up to their end
// were in them.
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

void FileTotals::account(std::span<const MissingFiles> missing, const TimeRange& range,
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
  // The files of another collector may have records that these counts do not include.
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
