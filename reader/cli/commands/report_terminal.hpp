// The terminal around a report: its looks, how far the reading is, Ctrl-C.
#pragma once

#include <chrono>
#include <cstdint>

#include "reader/cli/options/report_options.hpp"
#include "reader/render/text_style.hpp"

namespace arctrace::cli {

// Colours and width for standard output, as the options and the environment want them.
reader::TextStyle text_style(const ReportOptions& options);

// A line on standard error, if it is a terminal, of a reading that takes long.
class Progress {
 public:
  explicit Progress(bool wanted);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(uint64_t records);

 private:
  using Clock = std::chrono::steady_clock;

  bool wanted_;
  bool shown_ = false;
  Clock::time_point next_;
};

// While one exists, the first SIGINT is only noted; the second one ends the program.
class InterruptWatch {
 public:
  InterruptWatch();
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  static bool seen();
};

}  // namespace arctrace::cli
