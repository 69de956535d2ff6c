// Stores the stretches of time in which something was or was not recorded.
#include "reader/trace/recorded_times.hpp"

#include <arctrace/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "src/protocol/live_filter.hpp"

namespace arctrace::reader {
namespace {

// Returns the entries of the live filter. A "?" is of one of the two filters: if the text
// has entries of this one, it is of the other one.
std::vector<std::string> live_entries(std::string_view text) {
  std::vector<std::string> entries;
  bool is_unknown = false;
  for_each_filter_entry(text, [&](std::string_view entry) {
    is_unknown |= entry == kUnknownFilter;
    if (entry.starts_with(kFilterMark) || entry.starts_with(kNotraceMark)) {
      entries.emplace_back(entry);
    }
  });
  if (is_unknown && entries.empty()) entries.emplace_back(kUnknownFilter);
  return entries;
}

}  // namespace

std::vector<std::string> filter_entries(std::string_view text) {
  std::vector<std::string> entries;
  for_each_filter_entry(text,
                        [&](std::string_view entry) { entries.emplace_back(entry); });
  if (!text.empty() && text.back() != '\0') entries.back() = kUnknownFilter;
  return entries;
}

void LiveFilters::add(int64_t time_ns, std::string_view text) {
  std::vector<std::string> entries = live_entries(text);
  const bool is_open = !filters_.empty() && filters_.back().to_ns == INT64_MAX;
  if (is_open ? filters_.back().entries == entries : entries.empty()) return;
  if (filters_.size() == kMax) {
    filters_.back().to_ns = INT64_MAX;
    filters_.back().entries = {std::string(kUnknownFilter)};
    return;
  }
  if (is_open) filters_.back().to_ns = time_ns;
  if (!entries.empty()) filters_.push_back({time_ns, INT64_MAX, std::move(entries)});
}

uint32_t kernel_events_of(uint32_t recorded) {
  return recorded >> ARCTRACE_KERNEL_EVENT_SHIFT & ARCTRACE_KERNEL_EVENTS_ALL;
}

// ---- Events of the kernel ---------------------------------------------------------

void KernelEventTimes::add(int64_t time_ns, uint32_t recorded) {
  if ((recorded & ARCTRACE_GATE_KERNEL) == 0) return;
  uint32_t events = kernel_events_of(recorded);
  if (!stretches_.empty() && stretches_.back().events == events) return;
  if (stretches_.size() >= kMax) {
    if (stretches_.back().events == 0) return;
    events = 0;
  }
  ever_ |= events;
  if (!stretches_.empty()) stretches_.back().to_ns = time_ns;
  stretches_.push_back({time_ns, INT64_MAX, events});
}

// ---- Gaps in the kernel's records -------------------------------------------------

void KernelGaps::add(int64_t from_ns, int64_t to_ns, uint32_t cpu) {
  if (from_ns >= to_ns) return;
  any_.push_back({from_ns, to_ns});
  (cpu == kCpuNotKnown ? all_ : by_cpu_[cpu]).push_back({from_ns, to_ns});
}

void KernelGaps::finish() {
  for (auto& [cpu, stretches] : by_cpu_) {
    stretches.insert(stretches.end(), all_.begin(), all_.end());
    join(stretches);
  }
  join(all_);
  join(any_);
}

void KernelGaps::join(Stretches& stretches) {
  std::sort(stretches.begin(), stretches.end(),
            [](const Stretch& a, const Stretch& b) { return a.from_ns < b.from_ns; });
  size_t kept = 0;
  for (size_t i = 1; i < stretches.size(); ++i) {
    Stretch& last = stretches[kept];
    if (stretches[i].from_ns <= last.to_ns) {
      last.to_ns = std::max(last.to_ns, stretches[i].to_ns);
    } else {
      stretches[++kept] = stretches[i];
    }
  }
  if (!stretches.empty()) stretches.resize(kept + 1);
}

int64_t KernelGaps::next_ns(int64_t time_ns, uint32_t cpu) const {
  const Stretches* stretches = &any_;
  if (cpu != kCpuNotKnown) {
    const auto own = by_cpu_.find(cpu);
    stretches = own == by_cpu_.end() ? &all_ : &own->second;
  }
  const auto next = std::upper_bound(
      stretches->begin(), stretches->end(), time_ns,
      [](int64_t time, const Stretch& stretch) { return time < stretch.to_ns; });
  return next == stretches->end() ? INT64_MAX : std::max(next->from_ns, time_ns);
}

MissingTimes::MissingTimes(std::span<const MissingFiles> files, bool are_removed) {
  for (const MissingFiles& one : files) {
    if (one.is_removed == are_removed) times_.emplace_back(one.from_ns, one.to_ns);
  }
  std::sort(times_.begin(), times_.end());
  for (size_t i = 1; i < times_.size(); ++i) {
    times_[i].second = std::max(times_[i].second, times_[i - 1].second);
  }
}

bool MissingTimes::meet(int64_t from_ns, int64_t to_ns) const {
  const auto after =
      std::upper_bound(times_.begin(), times_.end(), std::pair(to_ns, INT64_MAX));
  return after != times_.begin() && std::prev(after)->second >= from_ns;
}

}  // namespace arctrace::reader
