// The terminal on which a report appears: its width and colours, a line of progress,
// Ctrl-C.
#pragma once

#include <signal.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "reader/render/text_style.hpp"

namespace arctrace::reader {

// kAuto: colours if standard output is a terminal that has them and NO_COLOR is not set.
enum class ColorMode : uint8_t { kAuto, kAlways, kNever };

// The style for standard output. `wide`: nothing is cut to the terminal's width.
TextStyle terminal_style(ColorMode color, bool wide);

// "arctrace: 42 %, 3.1 million records read, 1.2 million a second, 4 s left", after
// `seconds` of work. `share`: of the whole work, between 0 and 1; it may come out a
// little above; 0: not known, as is then what is left.
std::string progress_text(uint64_t records, double share, double seconds);

// A line on standard error, if it is a terminal, while a trace is read for longer than a
// second.
class Progress {
 public:
  // `wanted`: false makes an object that does nothing.
  explicit Progress(bool wanted);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `share`: of the whole work, between 0 and 1; 0: not known. With it the line says how
  // much time remains.
  void update(uint64_t records, double share = 0);

 private:
  using Clock = std::chrono::steady_clock;

  bool wanted_;
  bool shown_ = false;
  const Clock::time_point start_;
  Clock::time_point next_;
};

// While an object exists, the first SIGINT is only noted; the second one ends the
// program.
class InterruptWatch {
 public:
  InterruptWatch();
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  static bool interrupted();

 private:
  struct sigaction before_;
};

}  // namespace arctrace::reader
