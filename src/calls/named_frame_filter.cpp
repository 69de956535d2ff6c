#include "src/calls/named_frame_filter.hpp"

#include <arctrace/format.h>

#include "src/base/glob.hpp"
#include "src/base/memory.hpp"
#include "src/calls/call_filter.hpp"
#include "src/hook_abi/shim_types.h"
#include "src/process/session.hpp"
#include "src/protocol/live_filter.hpp"

namespace arctrace {
namespace {

// A verdict is the round of the live filter, shifted to the left by three, and these
// bits.
constexpr uint64_t kIsKnown = 1;
constexpr uint64_t kIsFilteredIn = 2;
constexpr uint64_t kIsNotrace = 4;
constexpr uint32_t kVerdictShift = 3;

// By id. Names with higher ids are looked for each time.
constexpr uint32_t kVerdicts = 1024;
uint64_t name_verdicts[kVerdicts];

constexpr size_t kNameMax = 1024;

FlagsOfName* flags_of_name;

uint64_t verdict_of(bool is_filtered_in, bool is_notrace, uint32_t round) {
  return uint64_t{round} << kVerdictShift | kIsKnown |
         (is_filtered_in ? kIsFilteredIn : 0) | (is_notrace ? kIsNotrace : 0);
}

uint32_t flags_of_verdict(uint64_t verdict) {
  return ((verdict & kIsFilteredIn) != 0 ? uint32_t{ARCTRACE_SHIM_FILTERED_IN} : 0U) |
         ((verdict & kIsNotrace) != 0 ? uint32_t{ARCTRACE_SHIM_NOTRACE} : 0U);
}

// A private copy of the live filter.
struct LiveFilterCopy {
  uint64_t words[kLiveFilterWords];
  uint32_t round;
  int64_t size;  // of the text in bytes; -1: it is being changed

  LiveFilterCopy() {
    size = copy_filter_untrusted(live_filter_area(session.view), words, round);
  }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(words), static_cast<size_t>(size)};
  }
};

// Puts the live filter into force if it has changed. Out of line, for its kilobyte of
// stack.
__attribute__((noinline)) void follow_changed_filter() {
  const LiveFilterCopy filter;
  if (filter.size < 0) return;
  const LiveFilterMatch match =
      match_live_filter(filter.text(), [](std::string_view) { return false; });
  set_live_filter(filter.round, filter.size == 0
                                    ? call_filter.filter_in_only_at_start != 0
                                    : match.filter_in_only);
}

// What the filter says of the name; `stored` if that can't be told at present.
__attribute__((noinline)) uint64_t judge(uint32_t name, uint64_t stored) {
  const LiveFilterCopy filter;
  if (filter.size < 0) return stored;
  const NameFacts facts = find_name(name);
  if (filter.size == 0) {
    return verdict_of((facts.filter_flags & ARCTRACE_SHIM_FILTERED_IN) != 0,
                      (facts.filter_flags & ARCTRACE_SHIM_NOTRACE) != 0, filter.round);
  }
  const LiveFilterMatch match = match_live_filter(
      filter.text(),
      [&facts](std::string_view glob) { return glob_matches(glob, facts.text); });
  return verdict_of(match.is_filtered_in, match.is_notrace, filter.round);
}

void judge_text(Definition& definition, std::string_view text) {
  char name[kNameMax + 1];
  const size_t size = text.size() < kNameMax ? text.size() : kNameMax;
  copy_bytes(name, text.data(), size);
  name[size] = '\0';
  set_name_flags(definition, flags_of_name(name));
}

}  // namespace

void set_flags_of_names(FlagsOfName* flags_of) {
  flags_of_name = flags_of;
  for_each_name([](Definition& definition, std::string_view text) {
    set_name_flags(definition, 0);
    if (flags_of_name != nullptr) judge_text(definition, text);
  });
  fill_zero(name_verdicts, sizeof name_verdicts);
}

void judge_name(Definition& definition) {
  if (flags_of_name != nullptr) judge_text(definition, name_text(definition));
}

uint32_t named_frame_flags(uint64_t key) {
  const uint32_t round = IpcAtomics::load_acquire(live_filter_area(session.view).round);
  if (round == 0 && !filter_is_active()) return 0;
  if (round != IpcAtomics::load_relaxed(call_filter.number)) follow_changed_filter();
  constexpr uint64_t kKind = ARCTRACE_FRAME_NAME_BIT | ARCTRACE_FRAME_LIBRARY_BIT;
  if ((key & kKind) != ARCTRACE_FRAME_NAME_BIT) return 0;
  const auto name = static_cast<uint32_t>(key);
  uint64_t unknown = 0;
  uint64_t& verdict = name < kVerdicts ? name_verdicts[name] : unknown;
  const uint64_t stored = IpcAtomics::load_relaxed(verdict);
  if (stored >> kVerdictShift == round && (stored & kIsKnown) != 0) {
    return flags_of_verdict(stored);
  }
  const uint64_t found = judge(name, stored);
  IpcAtomics::store_relaxed(verdict, found);
  return flags_of_verdict(found);
}

}  // namespace arctrace
