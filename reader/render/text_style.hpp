// How the views' text looks: units, columns, colours, long names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "reader/replay/call_tree.hpp"

namespace arctrace::reader {

struct TextStyle {
  bool color = false;
  // Columns of the terminal; names are cut to fit. 0: they are shown in full.
  size_t width = 0;
};

// "999 ns", "1.234 us", "12.345 ms", "3.210 s": cut, not rounded.
std::string duration_text(uint64_t duration_ns);

// "12.34", of 100; "0.00" of nothing.
std::string percent_text(uint64_t part, uint64_t whole);

// "1.234567890", "-0.000000001"
std::string seconds_text(int64_t time_ns);

// Appends `text`, filled up with blanks to `width` columns on the left or right; a column
// that is too narrow does not run into the one before it.
void append_right(std::string& out, std::string_view text, size_t width);
void append_left(std::string& out, std::string_view text, size_t width);

// Columns that escaped text takes: its code points.
size_t columns_of(std::string_view text);

// `name`, if it has more than `width` columns, with its middle replaced by "…". A width
// below 16 counts as 16. 0: in full.
std::string cut_middle(std::string_view name, size_t width);

// A function's name for a terminal: escaped, cut to the columns that are left behind
// `used` ones.
std::string display_name(std::string_view name, const TextStyle& style, size_t used);

// "", or " [unwound 2, open]": what was not as usual.
std::string marks_text(const NodeMarks& marks);

// Indentation for a depth: two columns a level, up to a bound, from which on the depth's
// number is what tells.
size_t indent_columns(uint64_t depth);

enum class Tint : uint8_t { kHead, kHot, kDim, kTrouble };

// Appends `text` in a colour if `style` has colours.
void append_tinted(std::string& out, const TextStyle& style, Tint tint,
                   std::string_view text);

}  // namespace arctrace::reader
