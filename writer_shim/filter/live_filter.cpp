// The filter's text is a list of globs, each after its mark, in the control page (SPEC.md
// 1.2), of which each use takes a copy.
#include "writer_shim/filter/live_filter.hpp"

#include <string_view>

#include "src/api/shim_interface.h"
#include "src/base/function_names.hpp"
#include "src/base/glob.hpp"
#include "src/base/memory.hpp"
#include "src/protocol/live_filter.hpp"

namespace arctrace::shim {
namespace {

static_assert(ARCTRACE_SHIM_LIVE_FILTER_MAX == ARCTRACE_LIVE_FILTER_TEXT_MAX);

constexpr uint32_t kNoRound = 0;
constexpr uint32_t kByPattern = ARCTRACE_SHIM_FILTERED_IN | ARCTRACE_SHIM_NOTRACE;

bool only_chosen_at_start;

}  // namespace

const volatile uint32_t* live_filter_round_word = &kNoRound;

void start_live_filter(bool filter_in_only) {
  only_chosen_at_start = filter_in_only;
  const volatile uint32_t* word = arctrace_shim_live_filter_number();
  if (word != nullptr) live_filter_round_word = word;
}

bool apply_live_filter(const char* name, uint32_t at_start, uint32_t& flags,
                       uint32_t& round) {
  uint64_t words[kLiveFilterWords];
  const int64_t size = arctrace_shim_copy_live_filter(words, &round);
  if (size < 0) return false;
  const std::string_view text(reinterpret_cast<const char*>(words),
                              static_cast<size_t>(size));
  const std::string_view linked(name, text_length(name, kLinkerNameMax));
  const std::string_view base = plain_linker_name(linked);
  const LiveFilterMatch match = match_live_filter(text, [&](std::string_view glob) {
    return glob_matches(glob, base) || glob_matches(glob, linked);
  });
  const uint32_t found =
      (match.is_filtered_in ? uint32_t{ARCTRACE_SHIM_FILTERED_IN} : 0U) |
      (match.is_notrace ? uint32_t{ARCTRACE_SHIM_NOTRACE} : 0U);
  const bool filter_in_only = size == 0 ? only_chosen_at_start : match.filter_in_only;
  flags = size == 0 ? at_start : (at_start & ~kByPattern) | found;
  arctrace_shim_follow_live_filter(round, filter_in_only ? 1 : 0);
  return true;
}

}  // namespace arctrace::shim
