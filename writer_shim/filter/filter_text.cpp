#include "writer_shim/filter/filter_text.hpp"

#include <string_view>

#include "src/base/memory.hpp"
#include "src/protocol/live_filter.hpp"

namespace arctrace::shim {
namespace {

class EntryWriter {
 public:
  explicit EntryWriter(FilterText& text) : text_(text) {}

  // Adds an entry of two parts, or the one that stands for all that follow.
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
