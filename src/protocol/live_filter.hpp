// The filters in the control page (SPEC.md FLT-1 and FLT-2), each a sequence lock around
// a text: `arctrace ctl` publishes it, and the programs of the session copy it.
#pragma once

#include <arctrace/format.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "src/base/shared_atomics.hpp"
#include "src/buffer/buffer_view.hpp"

namespace arctrace {

// The number of words of a filter's text: `Area` is arctrace_live_filter or
// arctrace_record_filter.
template <class Area>
inline constexpr uint32_t kFilterWords = sizeof(Area::text) / sizeof(uint64_t);
inline constexpr uint32_t kLiveFilterWords = kFilterWords<arctrace_live_filter>;

inline constexpr char kFilterMark = '+';   // only matching functions and what they call
inline constexpr char kNotraceMark = '-';  // not matching functions nor what they call

static_assert(ARCTRACE_LIVE_FILTER_OFFSET ==
              ARCTRACE_CONTROL_OFFSET + sizeof(arctrace_control));
static_assert(ARCTRACE_LIVE_FILTER_OFFSET + sizeof(arctrace_live_filter) <=
              ARCTRACE_CPUS_OFFSET);

inline arctrace_live_filter& live_filter_area(const BufferView& view) {
  return *reinterpret_cast<arctrace_live_filter*>(view.base() +
                                                  ARCTRACE_LIVE_FILTER_OFFSET);
}

// Copies the text to `to`, an array of kFilterWords<Area>, and returns its size in bytes,
// or -1 while it is being changed.
template <class Area>
int64_t copy_filter_untrusted(Area& area, uint64_t* to, uint32_t& generation) {
  generation = IpcAtomics::load_acquire(area.round);  // Q2
  if (generation % 2 != 0) return -1;
  const uint32_t size = IpcAtomics::load_relaxed(area.size);
  if (size > sizeof area.text) return 0;
  for (uint32_t i = 0; i < kFilterWords<Area>; ++i) {
    to[i] = IpcAtomics::load_relaxed(area.text[i]);
  }
  std::atomic_thread_fence(std::memory_order_acquire);  // Q3
  return IpcAtomics::load_relaxed(area.round) == generation ? int64_t{size} : -1;
}

// A private copy of a filter.
template <class Area>
struct FilterCopy {
  uint64_t words[kFilterWords<Area>];
  uint32_t generation;
  int64_t size;  // of the text in bytes; -1: it is being changed

  std::string_view text() const {
    return {reinterpret_cast<const char*>(words),
            size < 0 ? 0 : static_cast<size_t>(size)};
  }
};
using LiveFilterCopy = FilterCopy<arctrace_live_filter>;

inline void copy_live_filter_untrusted(const BufferView& view, LiveFilterCopy& copy) {
  copy.size = copy_filter_untrusted(live_filter_area(view), copy.words, copy.generation);
}

// Publishes the first `size` bytes of `text`, an array of kFilterWords<Area>. False:
// another process published a filter at the same time.
template <class Area>
bool publish_filter(Area& area, const uint64_t* text, uint32_t size) {
  uint32_t generation = IpcAtomics::load_relaxed(area.round);
  // If the generation is odd already, the process that changed it died or is about to
  // fail.
  const uint32_t changing = (generation + 1) | 1;
  if (!IpcAtomics::compare_exchange_acq_rel(area.round, generation, changing))
    return false;
  std::atomic_thread_fence(std::memory_order_release);  // Q4
  IpcAtomics::store_relaxed(area.size, size);
  for (uint32_t i = 0; i < kFilterWords<Area>; ++i) {
    IpcAtomics::store_relaxed(area.text[i], text[i]);
  }
  uint32_t expected = changing;
  const uint32_t next = changing + 1 == 0 ? 2 : changing + 1;
  return IpcAtomics::compare_exchange_acq_rel(area.round, expected, next);  // Q1
}

// Calls use(entry) for each entry of `text`, a filter's text, which may be of both
// filters.
template <class Use>
void for_each_filter_entry(std::string_view text, const Use& use) {
  while (!text.empty()) {
    size_t size = 0;
    while (size < text.size() && text[size] != '\0') ++size;
    use(text.substr(0, size));
    text.remove_prefix(size < text.size() ? size + 1 : size);
  }
}

// The live filter's text, matched against a function or a scope.
struct LiveFilterMatch {
  bool filter_in_only = false;  // the text has a kFilterMark, whatever that matches
  bool is_filtered_in = false;
  bool is_notrace = false;
};

// `matches(glob)`: whether the glob matches a name of the function or the scope.
template <class Matches>
LiveFilterMatch match_live_filter(std::string_view text, const Matches& matches) {
  LiveFilterMatch match;
  for_each_filter_entry(text, [&](std::string_view entry) {
    if (entry.empty()) return;
    const bool is_filter = entry[0] == kFilterMark;
    match.filter_in_only |= is_filter;
    entry.remove_prefix(1);
    if (!matches(entry)) return;
    (is_filter ? match.is_filtered_in : match.is_notrace) = true;
  });
  return match;
}

// The text that says which filter of calls a process was started with (SPEC.md REC-13)
// has entries that begin with these, besides the marks of the live filter.

inline constexpr std::string_view kFilterModule = "module:";
inline constexpr std::string_view kFilterDepth = "depth:";
inline constexpr std::string_view kFilterTime = "time:";
inline constexpr std::string_view kFilterSize = "size:";
// Begins a pattern that is a regular expression.
inline constexpr std::string_view kFilterRegex = "re:";
// Stands for entries for which there was no space.
inline constexpr std::string_view kFilterRest = "?";

inline constexpr size_t kCallFilterTextMax = 1024;  // bytes

// The text is the STRING of this id, which no name has.
inline constexpr uint32_t kCallFilterNameId = 0;

}  // namespace arctrace
