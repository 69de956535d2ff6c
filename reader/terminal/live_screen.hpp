// The screen of `arctrace live`: draws the model, and does what keys ask for.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "reader/live/live_model.hpp"
#include "reader/terminal/screen.hpp"

namespace arctrace::terminal {

class LiveScreen {
 public:
  // `title`: of the session, escaped. `snapshot` takes one and returns a message about
  // it.
  LiveScreen(Screen& screen, reader::LiveModel& model, std::string title,
             std::function<std::string()> snapshot)
      : screen_(screen),
        model_(model),
        title_(std::move(title)),
        snapshot_(std::move(snapshot)) {}

  void draw();
  // Returns false if the user wants to leave.
  bool handle(int key);
  // The row of the thread whose stack is shown; one past the end if no thread lives.
  size_t thread() const;
  // Says that nothing more will come.
  void set_over() { is_over_ = true; }

 private:
  // A part of the screen.
  struct Area {
    int line, column, lines, columns;
  };
  void draw_head();
  // Draws what is left out on purpose, and the newest marks, each on a line if there is
  // any. Returns the line below.
  int draw_notices(int line);
  void draw_table(const Area& area);
  void draw_stack(const Area& area);
  void draw_keys();
  void handle_filter(int key);
  void choose(int lines_on);
  void drill_down();
  void drill_up();

  Screen& screen_;
  reader::LiveModel& model_;
  const std::string title_;
  const std::function<std::string()> snapshot_;
  reader::LiveTable table_ = reader::LiveTable::kFunctions;
  reader::LiveSort sort_ = reader::LiveSort::kSelf;
  std::string filter_, note_;
  std::string through_;  // the function whose paths are shown; empty: of all
  std::string chosen_;   // the name of the chosen row; empty: none
  std::vector<reader::LiveRow> rows_;  // of the last picture
  bool is_typing_ = false;             // the filter
  bool is_over_ = false;
  bool shows_stack_ = true;  // of the chosen thread
  size_t top_ = 0;           // the first row that is shown
  size_t thread_ = 0;        // whose stack is shown
};

}  // namespace arctrace::terminal
