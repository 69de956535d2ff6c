// What `arctrace tui` shows of a trace while it is being read.
#pragma once

#include <cstdint>

#include "reader/analysis/block_times.hpp"
#include "reader/terminal/screen.hpp"
#include "reader/trace/trace.hpp"
#include "reader/ui/tables/page.hpp"

namespace arctrace::terminal {

class EarlyScreen {
 public:
  // All must outlive this object. `trace` need not have been read.
  EarlyScreen(Screen& screen, const reader::Trace& trace,
              const reader::BlockTimes& blocks);

  // What the program was, and which threads wrote how much and when, as far as
  // definitions and blocks tell. Nothing is seen before show().
  void draw();
  // Moves through it. False: the key is not one for that.
  bool handle(int key);

 private:
  Screen& screen_;
  reader::Page page_;
};

// How far a trace has been read, in the last line. `share`: between 0 and 1; 0: not
// known.
void draw_progress(Screen& screen, uint64_t records, double share, double seconds,
                   const char* keys);
// A text in the last line, over all else in it.
void draw_last_line(Screen& screen, const std::string& text);

}  // namespace arctrace::terminal
