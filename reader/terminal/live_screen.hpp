// The screen of `arctrace live`: draws the model, and does what keys ask for.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "reader/live/live_model.hpp"
#include "reader/terminal/screen.hpp"

namespace arctrace::terminal {

class LiveScreen {
 public:
  // `title`: of the session, escaped. `snapshot` takes one and returns what to say.
  LiveScreen(Screen& screen, reader::LiveModel& model, std::string title,
             std::function<std::string()> snapshot)
      : screen_(screen),
        model_(model),
        title_(std::move(title)),
        snapshot_(std::move(snapshot)) {}

  void draw();
  // False: the user wants to leave.
  bool handle(int key);
  // Shown at the bottom until the next key.
  void set_note(std::string note) { note_ = std::move(note); }

 private:
  void draw_head();
  void draw_rows(int first, int count);
  void draw_stack(int first, int count);
  void draw_keys();
  bool handle_filter(int key);

  Screen& screen_;
  reader::LiveModel& model_;
  const std::string title_;
  const std::function<std::string()> snapshot_;
  reader::LiveTable table_ = reader::LiveTable::kFunctions;
  reader::LiveSort sort_ = reader::LiveSort::kSelf;
  std::string filter_, note_;
  bool is_typing_ = false;   // the filter
  bool shows_stack_ = true;  // of the chosen thread, below the table
  size_t top_ = 0;           // the first row that is shown
  size_t thread_ = 0;        // whose stack is shown
};

}  // namespace arctrace::terminal
