// The filter of functions for frames that the program names itself. A verdict is stored
// by the name's id, with the generation of the live filter.
#include <arctrace/format.h>

#include <atomic>

#include "src/base/glob.hpp"
#include "src/base/large_table.hpp"
#include "src/base/memory.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/calls/call_filter.hpp"
#include "src/hook_abi/shim_types.h"
#include "src/process/session.hpp"
#include "src/protocol/live_filter.hpp"

namespace arctrace::writer {
namespace {

// A verdict is the generation of the live filter, shifted to the left by three, and these
// bits.
constexpr uint64_t kIsKnown = 1;
constexpr uint64_t kIsFilteredIn = 2;
constexpr uint64_t kIsNotrace = 4;
constexpr uint32_t kVerdictShift = 3;

// Verdicts are stored by id. Names with higher ids are judged each time.
constexpr uint32_t kVerdicts = 1024;
ARCTRACE_LARGE_TABLE uint64_t name_verdicts[kVerdicts];
uint32_t have_verdicts;  // not 0: some are not 0

uint64_t flags_of_name;  // address of a FlagsOfName; 0: there is none

FlagsOfName* present_flags_of_name() {
  return reinterpret_cast<FlagsOfName*>(
      static_cast<uintptr_t>(IpcAtomics::load_acquire(flags_of_name)));
}

uint64_t verdict_of(bool is_filtered_in, bool is_notrace, uint32_t generation) {
  return uint64_t{generation} << kVerdictShift | kIsKnown |
         (is_filtered_in ? kIsFilteredIn : 0) | (is_notrace ? kIsNotrace : 0);
}

uint32_t flags_of_verdict(uint64_t verdict) {
  return ((verdict & kIsFilteredIn) != 0 ? uint32_t{ARCTRACE_SHIM_FILTERED_IN} : 0U) |
         ((verdict & kIsNotrace) != 0 ? uint32_t{ARCTRACE_SHIM_NOTRACE} : 0U);
}

// Puts the live filter into force if it has changed. Out of line, for its kilobyte of
// stack.
__attribute__((noinline)) void follow_changed_filter() {
  LiveFilterCopy filter;
  copy_live_filter_untrusted(session.view, filter);
  if (filter.size < 0) return;
  const LiveFilterMatch match =
      match_live_filter(filter.text(), [](std::string_view) { return false; });
  set_live_filter(filter.generation, filter.size == 0
                                         ? call_filter.filter_in_only_at_start != 0
                                         : match.filter_in_only);
}

// The filter's verdict on the name; `stored` if that can't be told at present.
__attribute__((noinline)) uint64_t judge(uint32_t name, uint64_t stored) {
  LiveFilterCopy filter;
  copy_live_filter_untrusted(session.view, filter);
  if (filter.size < 0) return stored;
  const NameFacts facts = find_name(name);
  if (filter.size == 0) {
    return verdict_of((facts.filter_flags & ARCTRACE_SHIM_FILTERED_IN) != 0,
                      (facts.filter_flags & ARCTRACE_SHIM_NOTRACE) != 0,
                      filter.generation);
  }
  const LiveFilterMatch match = match_live_filter(
      filter.text(),
      [&facts](std::string_view glob) { return glob_matches(glob, facts.text); });
  return verdict_of(match.is_filtered_in, match.is_notrace, filter.generation);
}

void judge_name_by(FlagsOfName& flags_of, Definition& definition) {
  const std::string_view text = name_text(definition);
  char name[kNameMax + 1];
  const size_t size = text.size() < kNameMax ? text.size() : kNameMax;
  copy_bytes(name, text.data(), size);
  name[size] = '\0';
  set_name_flags(definition, flags_of(name));
}

}  // namespace

// A program that is joined as it runs may define a name at this moment. Each of the two
// functions has a fence between its store (of the definition, or of the function) and its
// load, so that one of them judges the name.
void set_flags_of_names(FlagsOfName* flags_of) {
  IpcAtomics::store_release(flags_of_name,
                            static_cast<uint64_t>(reinterpret_cast<uintptr_t>(flags_of)));
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for_each_name([](Definition& definition) {
    FlagsOfName* const present = present_flags_of_name();
    if (present == nullptr) return set_name_flags(definition, 0);
    judge_name_by(*present, definition);
  });
  if (IpcAtomics::load_relaxed(have_verdicts) == 0) return;
  fill_zero(name_verdicts, sizeof name_verdicts);
}

void judge_name(Definition& definition) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (FlagsOfName* const present = present_flags_of_name(); present != nullptr) {
    judge_name_by(*present, definition);
  }
}

uint32_t named_frame_flags(uint64_t key) {
  const uint32_t generation =
      IpcAtomics::load_acquire(live_filter_area(session.view).round);
  if (generation == 0 && !filter_is_active()) return 0;
  if (generation != IpcAtomics::load_relaxed(call_filter.number)) follow_changed_filter();
  constexpr uint64_t kKind = ARCTRACE_FRAME_NAME_BIT | ARCTRACE_FRAME_LIBRARY_BIT;
  if ((key & kKind) != ARCTRACE_FRAME_NAME_BIT) return 0;
  const auto name = static_cast<uint32_t>(key);
  uint64_t unknown = 0;
  uint64_t& verdict = name < kVerdicts ? name_verdicts[name] : unknown;
  const uint64_t stored = IpcAtomics::load_relaxed(verdict);
  if (stored >> kVerdictShift == generation && (stored & kIsKnown) != 0) {
    return flags_of_verdict(stored);
  }
  const uint64_t found = judge(name, stored);
  IpcAtomics::store_relaxed(have_verdicts, uint32_t{1});
  IpcAtomics::store_relaxed(verdict, found);
  return flags_of_verdict(found);
}

}  // namespace arctrace::writer
