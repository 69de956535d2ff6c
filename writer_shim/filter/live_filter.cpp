#include "writer_shim/filter/live_filter.hpp"

#include <string_view>

#include "src/api/shim_interface.h"
#include "src/base/memory.hpp"
#include "src/protocol/live_filter.hpp"
#include "src/shim_protocol/glob.hpp"

namespace arctrace::shim {
namespace {

constexpr uint32_t kNoRound = 0;

static_assert(ARCTRACE_SHIM_CHOICE_MAX == ARCTRACE_CHOICE_TEXT_MAX);

constexpr size_t kNameMax = 1024;

bool only_chosen_at_start;

// Without what compilers add to the names of copies (.cold, .constprop.0).
std::string_view plain_name(const char* name) {
  size_t length = 0;
  while (length < kNameMax && name[length] != '\0' && name[length] != '.') ++length;
  return {name, length};
}

constexpr uint32_t kByPattern = ARCTRACE_SHIM_CHOSEN | ARCTRACE_SHIM_LEFT_OUT;

}  // namespace

const volatile uint32_t* live_round_place = &kNoRound;

void start_live_choice(bool only_chosen) {
  only_chosen_at_start = only_chosen;
  const volatile uint32_t* place = arctrace_shim_choice_round();
  if (place != nullptr) live_round_place = place;
}

bool choose_live(const char* name, uint32_t at_start, uint32_t& flags, uint32_t& round) {
  uint64_t words[kChoiceWords];
  const int64_t size = arctrace_shim_copy_choice(words, &round);
  if (size < 0) return false;
  const char* line = reinterpret_cast<const char*>(words);
  const char* const end = line + size;
  const std::string_view plain = plain_name(name);
  bool only_chosen = false;
  uint32_t found = 0;
  while (line < end) {
    const size_t length = text_length(line, static_cast<size_t>(end - line));
    if (length != 0) {
      const bool is_chosen = *line == kTraceMark;
      only_chosen = only_chosen || is_chosen;
      if (glob_matches({line + 1, length - 1}, plain)) {
        found |= is_chosen ? ARCTRACE_SHIM_CHOSEN : ARCTRACE_SHIM_LEFT_OUT;
      }
    }
    line += length + 1;
  }
  if (size == 0) only_chosen = only_chosen_at_start;
  flags = size == 0 ? at_start : (at_start & ~kByPattern) | found;
  arctrace_shim_choose(round, only_chosen ? 1 : 0);
  return true;
}

}  // namespace arctrace::shim
