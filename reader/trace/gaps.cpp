#include "reader/trace/gaps.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "reader/trace/format_names.hpp"
#include "reader/trace/record.hpp"
#include "reader/trace/record_types.hpp"
#include "reader/trace/recorded_times.hpp"
#include "src/base/untrusted_bytes.hpp"
#include "src/protocol/record_filter.hpp"

namespace arctrace::reader {

std::string_view enabled_filter_untrusted(std::span<const std::byte> body) {
  const auto fixed = load_part_untrusted<arctrace_enabled_body>(body);
  const std::span<const std::byte> rest =
      body.subspan(std::min(body.size(), sizeof fixed));
  return as_text(rest.first(std::min<size_t>(rest.size(), fixed.filter_size)));
}

std::string gap_reason_text(const Gap& gap) {
  switch (gap.reason) {
    case Gap::Reason::kOff:
      return (gap.detail & ARCTRACE_GATE_ALL) == ARCTRACE_GATE_ALL
                 ? "recording off"
                 : gate_text(gap.detail) + " off";
    case Gap::Reason::kFiltered:
      return "other threads filtered out";
    case Gap::Reason::kOverwritten:
      return "overwritten";
    case Gap::Reason::kMissing:
      return "missing";
    case Gap::Reason::kRemoved:
      return "removed";
    case Gap::Reason::kNotJoined:
      return "before it was joined";
    case Gap::Reason::kLost:
      break;
  }
  return "lost: " + loss_cause_text(gap.detail);
}

GapFinder::Seen& GapFinder::seen_of(ThreadIndex thread) {
  if (thread >= seen_.size()) seen_.resize(size_t{thread} + 1);
  return seen_[thread];
}

std::optional<Gap> GapFinder::add(const Record& record) {
  now_ = std::max(now_, record.time_ns);
  std::optional<Gap> gap;
  const bool is_threads = record.thread < definitions_.threads().size() &&
                          record.type < ARCTRACE_TYPE_PROCESS;
  if (is_threads) gap = missing_before(record);
  if (!gap.has_value() && record.type == ARCTRACE_TYPE_LOST) gap = lost(record);
  if (record.type == ARCTRACE_TYPE_ENABLED) gap = enabled(record);
  if (is_threads) seen_of(record.thread).last_ns = record.time_ns;
  const std::span<const MissingFiles> files = definitions_.missing_files();
  if (!gap.has_value() && missing_files_ < files.size() &&
      files[missing_files_].to_ns <= now_) {
    gap = missing_file();
  }
  return gap;
}

// Returns the next gap whose files are missing.
std::optional<Gap> GapFinder::missing_file() {
  const std::span<const MissingFiles> all = definitions_.missing_files();
  if (missing_files_ == all.size()) return std::nullopt;
  const MissingFiles& files = all[missing_files_++];
  Gap gap;
  gap.reason = files.is_removed ? Gap::Reason::kRemoved : Gap::Reason::kMissing;
  gap.from_ns = files.from_ns;
  gap.to_ns = std::max(files.from_ns, files.to_ns);
  gap.records = files.all_records();
  return gap;
}

// Returns why blocks of a thread in that time are missing.
Gap::Reason GapFinder::missing_reason(int64_t from_ns, int64_t to_ns) const {
  if (elsewhere_.meet(from_ns, to_ns)) return Gap::Reason::kMissing;
  return removed_.meet(from_ns, to_ns) ? Gap::Reason::kRemoved : Gap::Reason::kMissing;
}

// Returns the gap between the thread's record before this one, or its start, and this
// one.
std::optional<Gap> GapFinder::missing_before(const Record& record) {
  Seen& seen = seen_of(record.thread);
  const bool is_first = seen.last_ns == INT64_MIN;
  const bool is_overwritten = mode_ == ARCTRACE_MODE_OVERWRITE;
  if (!record.after_gap && (!is_first || is_overwritten)) return std::nullopt;
  const int64_t start = definitions_.threads()[record.thread].start_ns;
  Gap gap;
  gap.thread = record.thread;
  gap.from_ns = std::min(is_first ? start : seen.last_ns, record.time_ns);
  gap.to_ns = record.time_ns;
  gap.reason =
      is_overwritten ? Gap::Reason::kOverwritten : missing_reason(gap.from_ns, gap.to_ns);
  if (record.after_gap && record.compact) {
    seen.has_gap = true;
    return gap;
  }
  // In blocks of several writers every STACK might follow a gap. The end tells whether
  // there were records before the thread's first one.
  if (is_first && !record.compact) seen.open_gap = gap;
  return std::nullopt;
}

// Returns the gap of a LOST record. A thread records that there was no block for its
// records before it writes the next one. So losses that the collector records for it came
// after its last record.
Gap GapFinder::lost(const Record& record) const {
  const auto body = load_part_untrusted<arctrace_lost_body>(record.body);
  Gap gap;
  gap.detail = body.cause;
  gap.records = body.count;
  gap.to_ns = gap.from_ns = record.time_ns;
  if ((body.flags & ARCTRACE_LOST_CPU) != 0) {
    gap.cpu = body.flags >> ARCTRACE_LOST_CPU_SHIFT;
  } else if ((body.flags & (ARCTRACE_LOST_SESSION | ARCTRACE_LOST_INHERITED)) == 0) {
    gap.thread = record.thread;
  }
  gap.from_known = body.since_ticks != 0 && clock_ != nullptr;
  if (gap.from_known) {
    int64_t from_ns = clock_->to_ns(body.since_ticks);
    const bool is_residual = (body.flags & ARCTRACE_LOST_RESIDUAL) != 0;
    if (is_residual && gap.thread < seen_.size() && body.cause == ARCTRACE_LOST_FULL) {
      from_ns = std::max(from_ns, seen_[gap.thread].last_ns);
    }
    gap.from_ns = std::min(from_ns, record.time_ns);
  }
  return gap;
}

std::optional<Gap> GapFinder::enabled(const Record& record) {
  const uint32_t gate = load_part_untrusted<arctrace_enabled_body>(record.body).gate;
  uint32_t off = ARCTRACE_GATE_ALL & ~gate;
  // Of the kernel's events, those that are never recorded are no gap.
  if ((gate & ARCTRACE_GATE_KERNEL) != 0) {
    off |= (definitions_.kernel_events().ever() & ~kernel_events_of(gate))
           << ARCTRACE_KERNEL_EVENT_SHIFT;
  }
  const ThreadFilter threads(enabled_filter_untrusted(record.body), 0, 0);
  const bool filters_threads = threads.by_pid || threads.by_tid;
  if (off == off_ && filters_threads == filters_threads_) return std::nullopt;
  std::optional<Gap> gap = off_until(record.time_ns);
  off_ = off;
  filters_threads_ = filters_threads;
  off_since_ns_ = record.time_ns;
  return gap;
}

// Returns the gap of what is not recorded at present, up to then.
std::optional<Gap> GapFinder::off_until(int64_t time_ns) const {
  if (off_ == 0 && !filters_threads_) return std::nullopt;
  Gap gap;
  gap.reason = off_ != 0 ? Gap::Reason::kOff : Gap::Reason::kFiltered;
  gap.detail = off_;
  gap.from_ns = off_since_ns_;
  gap.to_ns = std::max(time_ns, off_since_ns_);
  return gap;
}

std::vector<Gap> GapFinder::finish(const Summary* summary) {
  std::vector<Gap> gaps;
  while (std::optional<Gap> gap = missing_file()) gaps.push_back(*gap);
  if (std::optional<Gap> gap = off_until(now_)) gaps.push_back(*gap);
  for (const CpuBegin& begin : definitions_.kernel_begins()) {
    Gap gap;
    gap.reason = Gap::Reason::kOverwritten;
    gap.cpu = begin.cpu;
    gap.to_ns = begin.first_ns;
    gap.from_ns = std::min<int64_t>(0, gap.to_ns);
    gaps.push_back(gap);
  }
  for (ThreadIndex i = 0; i < definitions_.threads().size(); ++i) {
    if (!definitions_.joined_running(i)) continue;
    Gap gap;
    gap.reason = Gap::Reason::kNotJoined;
    gap.thread = i;
    gap.from_known = false;
    gap.from_ns = gap.to_ns = definitions_.process_of(i)->start_ns;
    gaps.push_back(gap);
  }
  if (summary == nullptr) return gaps;
  for (ThreadIndex i = 0; i < definitions_.threads().size(); ++i) {
    if (std::optional<Gap> gap = missing_of(i, *summary)) gaps.push_back(*gap);
  }
  return gaps;
}

// Returns the gap of a thread that the totals show, but no record.
std::optional<Gap> GapFinder::missing_of(ThreadIndex index, const Summary& summary) {
  const bool is_overwritten = mode_ == ARCTRACE_MODE_OVERWRITE;
  const std::vector<uint64_t>& missing =
      is_overwritten ? summary.overwritten_by_thread : summary.elsewhere_by_thread;
  if (index >= missing.size() || missing[index] == 0) return std::nullopt;
  const Seen& seen = seen_of(index);
  if (seen.last_ns != INT64_MIN) {
    if (is_overwritten) return seen.open_gap;
    if (seen.has_gap || !seen.open_gap.has_value()) return std::nullopt;
    Gap gap = *seen.open_gap;
    gap.records = missing[index];
    return gap;
  }
  const Thread& thread = definitions_.threads()[index];
  Gap gap;
  gap.thread = index;
  gap.to_ns = std::min(thread.end_ns, now_);
  gap.from_ns = std::min(thread.start_ns, gap.to_ns);
  gap.reason =
      is_overwritten ? Gap::Reason::kOverwritten : missing_reason(gap.from_ns, gap.to_ns);
  gap.records = missing[index];
  return gap;
}

}  // namespace arctrace::reader
