// Applies the live filter. Its text is a list of globs, each after its mark, in the
// control page (SPEC.md, "Control page"), of which each use makes a copy.
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

constexpr uint32_t kNoGeneration = 0;
constexpr uint32_t kByPattern = ARCTRACE_SHIM_FILTERED_IN | ARCTRACE_SHIM_NOTRACE;

bool only_chosen_at_start;

}  // namespace

const volatile uint32_t* live_filter_generation_word = &kNoGeneration;

void start_live_filter(bool filter_in_only) {
  only_chosen_at_start = filter_in_only;
  const volatile uint32_t* word = arctrace_shim_live_filter_number();
  if (word != nullptr) live_filter_generation_word = word;
}

bool apply_live_filter(const char* name, uint32_t at_start, uint32_t& flags,
                       uint32_t& generation) {
  uint64_t words[kLiveFilterWords];
  const int64_t size = arctrace_shim_copy_live_filter(words, &generation);
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
  arctrace_shim_follow_live_filter(generation, filter_in_only ? 1 : 0);
  return true;
}

namespace {

class EntryWriter {
 public:
  explicit EntryWriter(FilterText& text) : text_(text) {}

  // Adds an entry of two parts, or the one that stands for all further ones.
  void add(std::string_view mark, std::string_view rest) {
    if (is_full_) return;
    constexpr size_t kLast = kFilterRest.size() + 1;
    if (text_.size + mark.size() + rest.size() + 1 + kLast > sizeof text_.bytes) {
      is_full_ = true;
      mark = kFilterRest;
      rest = {};
    }
    put(mark);
    put(rest);
    text_.bytes[text_.size++] = '\0';
  }

  void add(std::string_view mark, uint64_t number) {
    if (number == 0) return;
    char digits[20];
    size_t begin = sizeof digits;
    for (; number != 0; number /= 10) {
      digits[--begin] = static_cast<char>('0' + number % 10);
    }
    add(mark, std::string_view(digits + begin, sizeof digits - begin));
  }

 private:
  void put(std::string_view part) {
    copy_bytes(text_.bytes + text_.size, part.data(), part.size());
    text_.size += static_cast<uint32_t>(part.size());
  }

  FilterText& text_;
  bool is_full_ = false;
};

std::string_view mark_of(Pattern::Kind kind) {
  static constexpr char kMarks[] = {kFilterMark, kNotraceMark};
  if (kind == Pattern::Kind::kFilter) return {kMarks, 1};
  if (kind == Pattern::Kind::kNotrace) return {kMarks + 1, 1};
  return kind == Pattern::Kind::kModule ? kFilterModule : std::string_view();
}

}  // namespace

void write_filter_text(const ShimOptions& options, FilterText& text) {
  EntryWriter writer(text);
  writer.add(kFilterDepth, options.depth_max);
  writer.add(kFilterTime, options.min_ns);
  if (options.filters_sizes()) writer.add(kFilterSize, options.size_min);
  for (size_t i = 0; i < options.pattern_count; ++i) {
    const Pattern& pattern = options.patterns[i];
    const std::string_view mark = mark_of(pattern.kind);
    if (mark.empty()) continue;
    size_t size = 0;
    while (pattern.text[size] != '\0') ++size;
    writer.add(mark, std::string_view(pattern.text, size));
  }
}

}  // namespace arctrace::shim
