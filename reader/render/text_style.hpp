// How text output looks: units, columns, colours, long names, and lines that are never
// wider than the terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace arctrace::reader {

// How text output looks: units, columns, colours, long names.
struct TextStyle {
  bool color = false;
  // Columns of the terminal; names are cut to fit. 0: they are shown in full.
  size_t width = 0;
  bool utf8 = true;  // the terminal shows UTF-8, else only ASCII
  // It was asked for that nothing is cut. Else paths of overviews are cut without a
  // terminal, too.
  bool whole = false;
};

// The columns of a path in an overview if there is no terminal.
inline constexpr size_t kOverviewPathColumns = 160;

// Returns the mark of a part that was cut out: "…" or "..".
std::string_view ellipsis_of(const TextStyle& style);

// "1,234,567"
std::string grouped_text(uint64_t number);

// "999 ns", "1.23 us", "12.3 ms", "3.21 s", "1,234 s": three digits, rounded. "-" for 0,
// so that sums of nothing do not look like measurements.
std::string duration_text(uint64_t duration_ns);
// The same for the time of a single call. A call's 0 is less than the clock can tell: "<1
// ns".
std::string call_time_text(uint64_t duration_ns);

// The unit of a whole column of times, which its head names, and its decimals.
struct TimeScale {
  const char* unit;  // "ns", "us", "ms" or "s"
  uint64_t unit_ns;
  int decimals;
};
// Returns the scale in which the largest time of a column has three digits.
TimeScale time_scale(uint64_t largest_ns);
// "88.8", "9.7"; a time that is less than the last digit has its own unit, "26.2 us"; "-"
// for 0.
std::string scaled_text(uint64_t duration_ns, const TimeScale& scale);

// The share of `part` in `whole` in percent, "12.3", "100", "<0.1"; "-" for nothing.
std::string percent_text(uint64_t part, uint64_t whole);

// The share beside a bar: "64 %", "<1 %"; "-" for nothing.
std::string share_text(uint64_t part, uint64_t whole);

// A bar that is as long as that share of `columns`: blocks of eighths, or '#' in ASCII.
std::string bar_text(uint64_t part, uint64_t whole, size_t columns,
                     const TextStyle& style);

// "1.234567890", "-0.000000001"
std::string seconds_text(int64_t time_ns);

// Appends `text`, aligned to the right or left in a column of `width`. A text that is too
// wide for a right-aligned column is separated from the one before it by a blank.
void append_right(std::string& out, std::string_view text, size_t width);
void append_left(std::string& out, std::string_view text, size_t width);

// Columns that escaped text takes: its code points.
size_t columns_of(std::string_view text);

// Returns a function's name, or a path of names, in at most `width` columns, but 16 at
// least. Cuts first the ends of parameters in parentheses, then a template's result, then
// the ends of template arguments, then the middle of the name; an ellipsis stands for
// each, but not for the result. 0: in full.
std::string cut_name(std::string_view name, size_t width, const TextStyle& style);

// Returns a path "main > run > f" in at most `width` columns: an ellipsis stands for
// functions in its middle, so that the outermost and the innermost ones stay. If those
// two alone are too wide it is cut as by cut_name().
std::string cut_path(std::string_view path, size_t width, const TextStyle& style);

// Returns the indentation for a depth: two columns a level, up to a bound, and up to half
// of what the terminal has beside `used` columns. Beyond it only the number of the depth
// distinguishes levels.
size_t indent_columns(uint64_t depth, size_t used, const TextStyle& style);

enum class Tint : uint8_t { kHead, kHot, kDim, kTrouble };

// Appends `text` in a colour if `style` has colours.
void append_tinted(std::string& out, const TextStyle& style, Tint tint,
                   std::string_view text);

// Lines that are never wider than the terminal.

// `line` without a newline, cut to style.width columns with the style's ellipsis at its
// end. Colours take no columns.
std::string fit_line(std::string_view line, const TextStyle& style);

// `line` without a newline, continued in further lines where it is wider than
// style.width: for sentences, of which nothing may be cut. Breaks after blanks and '|';
// further lines begin with `indent` blanks.
std::string wrap_line(std::string_view line, size_t indent, const TextStyle& style);

// Fits text that comes in pieces, line by line.
class LineFitter {
 public:
  explicit LineFitter(const TextStyle& style) : style_(style) {}

  // Returns the lines that `text` completes, each as fit_line() makes it.
  std::string add(std::string_view text);
  // Returns the text after the last newline.
  std::string rest() const { return fit_line(rest_, style_); }

 private:
  const TextStyle style_;
  std::string rest_;
};

}  // namespace arctrace::reader
