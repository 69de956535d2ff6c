// The screen of `arctrace tui`: draws what the browser shows, and forwards what keys ask
// for.
#pragma once

#include "reader/terminal/screen.hpp"
#include "reader/ui/tables/browser.hpp"

namespace arctrace::terminal {

class BrowserScreen {
 public:
  // Both must outlive this object.
  BrowserScreen(Screen& screen, reader::Browser& browser)
      : screen_(screen), browser_(browser) {}

  // Nothing is seen before Screen::show().
  void draw();
  // Returns false if the user wants to leave.
  bool handle(int key);

 private:
  void handle_typed(int key);

  Screen& screen_;
  reader::Browser& browser_;
};

}  // namespace arctrace::terminal
