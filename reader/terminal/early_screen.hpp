// The screen of `arctrace tui` while a trace is being read.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "reader/analysis/block_times.hpp"
#include "reader/terminal/screen.hpp"
#include "reader/trace/record.hpp"
#include "reader/trace/trace.hpp"
#include "reader/ui/tables/page.hpp"

namespace arctrace::terminal {

class EarlyScreen {
 public:
  // All must outlive this object. `trace` need not have been read.
  EarlyScreen(Screen& screen, const reader::Trace& trace,
              const reader::BlockTimes& blocks);

  // Draws what the program was, and which threads wrote how much and when, as far as
  // definitions and blocks tell. Nothing is seen before show().
  void draw();
  // Moves through the picture. Returns false if the key is not one for that.
  bool handle(int key);

 private:
  Screen& screen_;
  reader::Page page_;
};

// Draws how far a trace has been read, in the last line. `share`: between 0 and 1; 0: not
// known.
void draw_progress(Screen& screen, uint64_t records, double share, double seconds,
                   const char* keys);
// Draws a text in the last line, over all else in it.
void draw_last_line(Screen& screen, const std::string& text);

// Asks for a range of time in the last line of a screen.
class RangePrompt {
 public:
  // Returns the range that a text means; an error says in one line why it means none.
  using Parse = std::function<absl::StatusOr<reader::TimeRange>(std::string_view)>;

  explicit RangePrompt(Parse parse) : parse_(std::move(parse)) {}

  bool is_open() const { return is_open_; }
  void open();
  // Applies a key to the text that is typed. Returns the range once it is complete: all
  // of the time if nothing was typed. REQUIRES: is_open().
  std::optional<reader::TimeRange> handle(int key);
  // Nothing is seen before Screen::show().
  void draw(Screen& screen) const;

 private:
  const Parse parse_;
  bool is_open_ = false;
  std::string typed_;
  std::string problem_;  // of what was typed last
};

}  // namespace arctrace::terminal
