// The terminal as a screen of cells, restored however the program leaves it.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string_view>

namespace arctrace::terminal {

// kHot and kTrouble are colours, and without colours bold.
enum class Emphasis : uint8_t { kPlain, kBold, kDim, kReverse, kHot, kTrouble };

class Screen {
 public:
  // `wants_color`: with colours if the terminal has them. Error: standard input or output
  // is no terminal, or it is of an unknown type.
  static absl::StatusOr<std::unique_ptr<Screen>> open(bool wants_color = false);
  // Restores the terminal.
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  int lines() const;
  int columns() const;
  // Whether the terminal's text is UTF-8.
  bool is_utf8() const { return is_utf8_; }

  // Empties the picture. Nothing is seen of it before show().
  void clear();
  // Puts text at a place of the picture, cut at `width` columns. The text must be
  // escaped.
  void put(int line, int column, int width, std::string_view text,
           Emphasis emphasis = Emphasis::kPlain);
  void show();
  // Makes the next show() draw the whole picture anew.
  void redraw();

  // Waits for a key, for so long at most. Returns a character, a kKey..., or kKeyNone.
  int key(int timeout_ms);

  static constexpr int kKeyNone = -1, kKeyUp = -2, kKeyDown = -3, kKeyPageUp = -4,
                       kKeyPageDown = -5, kKeyResize = -6, kKeyBackspace = -7,
                       kKeyEnter = -8, kKeyEscape = -9, kKeyLeft = -11, kKeyRight = -12,
                       kKeyHome = -13, kKeyEnd = -14, kKeyBackTab = -15;
  // The terminal has hung up: no key will ever come.
  static constexpr int kKeyGone = -10;

 private:
  explicit Screen(bool is_utf8) : is_utf8_(is_utf8) {}
  const bool is_utf8_;
};

}  // namespace arctrace::terminal
