#include "reader/trace/session_totals.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <numeric>

#include "src/base/untrusted_bytes.hpp"

namespace arctrace::reader {

void SessionTotals::add_untrusted(const RawRecord& record) {
  const auto totals = load_part_untrusted<arctrace_totals_body>(record.body);
  written_[record.writer] = totals.written;
  if (record.writer != ARCTRACE_WRITER_COLLECTOR) {
    uint64_t& lost = lost_by_writer_[record.writer];
    lost = 0;
    // By indices: the body is aligned to 4 bytes only.
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

void SessionTotals::settle(const Session& session, const Definitions& definitions,
                           const WriterFates& fates, const Emitter& emitter,
                           bool is_in_part_elsewhere, Summary& summary,
                           FindingLog& findings) const {
  if (session.mode == ARCTRACE_MODE_OVERWRITE) {
    add_overwritten(definitions, emitter, summary);
  } else if (!session.raw && session.finished &&
             (!session.resumed || is_in_part_elsewhere)) {
    settle_kept(definitions, fates, emitter, is_in_part_elsewhere, summary, findings);
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

void SessionTotals::settle_kept(const Definitions& definitions, const WriterFates& fates,
                                const Emitter& emitter, bool is_in_part_elsewhere,
                                Summary& summary, FindingLog& findings) const {
  const std::optional<uint64_t> counted = written_by(ARCTRACE_WRITER_COLLECTOR);
  if (!counted.has_value()) return;
  // Each of them may have counted a record that it did not begin.
  const auto died = static_cast<uint64_t>(
      std::count_if(fates.begin(), fates.end(),
                    [](const auto& fate) { return fate.second == WriterFate::kDead; }));
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
    const bool has_died = fate != fates.end() && fate->second == WriterFate::kDead;
    const uint64_t has =
        summary.records_by_thread[thread] + emitter.in_progress_of(thread);
    if (count > has + (has_died ? 1 : 0)) {
      summary.elsewhere_by_thread[thread] = count - has;
    }
  }
}

}  // namespace arctrace::reader
