#include "reader/terminal/screen.hpp"

#include <absl/strings/str_cat.h>
#define NCURSES_NOMACROS  // their names are those of functions here
#include <curses.h>
#include <langinfo.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdlib>
#include <string>

#include "reader/trace/text_escape.hpp"

namespace arctrace::terminal {
namespace {

SCREEN* screen = nullptr;

attr_t attribute_of(Look look) {
  switch (look) {
    case Look::kBold:
      return A_BOLD;
    case Look::kDim:
      return A_DIM;
    case Look::kReverse:
      return A_REVERSE;
    default:
      return A_NORMAL;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Screen>> Screen::open() {
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1) {
    return absl::FailedPreconditionError("standard input and output are no terminal");
  }
  std::setlocale(LC_CTYPE, "");
  const bool is_utf8 = std::string_view(nl_langinfo(CODESET)) == "UTF-8";
  // The rest of a key that begins with Escape comes at once, or it is that key.
  ::setenv("ESCDELAY", "50", 0);
  screen = ::newterm(nullptr, stdout, stdin);
  if (screen == nullptr) {
    const char* type = std::getenv("TERM");
    return absl::FailedPreconditionError(absl::StrCat(
        "the terminal's type, TERM=", type == nullptr ? "" : reader::escaped(type),
        ", is not known here"));
  }
  ::cbreak();
  ::noecho();
  ::curs_set(0);
  ::keypad(stdscr, TRUE);
  return std::unique_ptr<Screen>(new Screen(is_utf8));
}

Screen::~Screen() {
  ::endwin();
  ::delscreen(screen);
  screen = nullptr;
}

int Screen::lines() const { return LINES; }
int Screen::columns() const { return COLS; }
void Screen::clear() { ::erase(); }
void Screen::show() { ::refresh(); }
void Screen::redraw() { ::clearok(stdscr, TRUE); }

void Screen::put(int line, int column, int width, std::string_view text, Look look) {
  if (line < 0 || line >= LINES || column < 0 || column >= COLS) return;
  const int room = std::min(width, COLS - column);
  ::attrset(static_cast<int>(attribute_of(look)));
  int used = 0;
  size_t at = 0;
  // One code point after the other, each of one column.
  while (at < text.size() && used < room) {
    size_t end = at + 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
      ++end;
    }
    const std::string point(text.substr(at, end - at));
    ::mvaddstr(line, column + used, is_utf8_ || point.size() == 1 ? point.c_str() : "?");
    at = end;
    ++used;
  }
  ::attrset(A_NORMAL);
}

int Screen::key(int timeout_ms) {
  ::timeout(timeout_ms);
  const int key = ::getch();
  switch (key) {
    case ERR:
      return kKeyNone;
    case KEY_UP:
      return kKeyUp;
    case KEY_DOWN:
      return kKeyDown;
    case KEY_PPAGE:
      return kKeyPageUp;
    case KEY_NPAGE:
      return kKeyPageDown;
    case KEY_RESIZE:
      return kKeyResize;
    case KEY_BACKSPACE:
    case 0x7F:
    case '\b':
      return kKeyBackspace;
    case KEY_ENTER:
    case '\n':
    case '\r':
      return kKeyEnter;
    case 0x1B:
      return kKeyEscape;
    default:
      return key < 0x100 ? key : kKeyNone;
  }
}

}  // namespace arctrace::terminal
