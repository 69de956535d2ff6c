#include "reader/terminal/screen.hpp"

#include <absl/strings/str_cat.h>
#define NCURSES_NOMACROS  // their names are those of functions here
#include <curses.h>
#include <langinfo.h>
#include <poll.h>
#include <unistd.h>
#include <wchar.h>

#include <algorithm>
#include <clocale>
#include <cstdlib>
#include <cwchar>
#include <string>

#include "reader/trace/text_escape.hpp"

namespace arctrace::terminal {
namespace {

SCREEN* screen = nullptr;
bool is_colored = false;

// The numbers of pairs of colours.
constexpr short kHotPair = 1, kTroublePair = 2;

attr_t attribute_of(Emphasis emphasis) {
  switch (emphasis) {
    case Emphasis::kHot:
      return is_colored ? static_cast<attr_t>(COLOR_PAIR(kHotPair)) : A_BOLD;
    case Emphasis::kTrouble:
      return is_colored ? static_cast<attr_t>(COLOR_PAIR(kTroublePair)) : A_BOLD;
    case Emphasis::kBold:
      return A_BOLD;
    case Emphasis::kDim:
      return A_DIM;
    case Emphasis::kReverse:
      return A_REVERSE;
    default:
      return A_NORMAL;
  }
}

bool has_hung_up() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  return ::poll(&input, 1, 0) > 0 && (input.revents & (POLLHUP | POLLERR)) != 0;
}

bool continues_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

// Returns as much of the text as fits into the columns: the terminal shows some
// characters in two of them, and some in none. Characters that it cannot show become
// question marks.
std::string fitting(std::string_view text, int columns) {
  std::string shown;
  std::mbstate_t state{};
  for (int used = 0; !text.empty();) {
    size_t size = 1;
    while (size < text.size() && continues_character(text[size])) ++size;
    std::string_view point = text.substr(0, size);
    wchar_t character = 0;
    const bool is_known =
        std::mbrtowc(&character, point.data(), size, &state) == size && character != 0;
    int width = is_known ? ::wcwidth(character) : -1;
    if (width < 0) {
      state = {};
      point = "?";
      width = 1;
    }
    if (used + width > columns) break;
    used += width;
    shown += point;
    text.remove_prefix(size);
  }
  return shown;
}

// Colours leave the background of the terminal as it is.
bool start_colors() {
  if (!::has_colors() || ::start_color() == ERR) return false;
  return ::use_default_colors() != ERR && ::init_pair(kHotPair, COLOR_RED, -1) != ERR &&
         ::init_pair(kTroublePair, COLOR_YELLOW, -1) != ERR;
}

// Whether text can be put at any place.
bool has_places() {
  const char* move = ::tigetstr("cup");
  return move != nullptr && move != reinterpret_cast<char*>(-1) && *move != '\0';
}

}  // namespace

absl::StatusOr<std::unique_ptr<Screen>> Screen::open(bool wants_color) {
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1) {
    return absl::FailedPreconditionError("standard input and output are no terminal");
  }
  std::setlocale(LC_CTYPE, "");
  const bool is_utf8 = std::string_view(nl_langinfo(CODESET)) == "UTF-8";
  // The rest of a key that begins with Escape comes at once; else the key is Escape
  // itself.
  ::setenv("ESCDELAY", "50", 0);
  screen = ::newterm(nullptr, stdout, stdin);
  if (screen == nullptr) {
    const char* type = std::getenv("TERM");
    return absl::FailedPreconditionError(absl::StrCat(
        "the terminal's type, TERM=", type == nullptr ? "" : reader::escaped(type),
        ", is not known here"));
  }
  std::unique_ptr<Screen> opened(new Screen(is_utf8));
  if (!has_places()) {
    return absl::FailedPreconditionError(
        absl::StrCat("a terminal of the type TERM=", reader::escaped(::termname()),
                     " cannot show a screen"));
  }
  ::cbreak();
  ::noecho();
  ::curs_set(0);
  ::keypad(stdscr, TRUE);
  is_colored = wants_color && start_colors();
  return opened;
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

void Screen::put(int line, int column, int width, std::string_view text,
                 Emphasis emphasis) {
  if (line < 0 || line >= LINES || column < 0 || column >= COLS) return;
  ::attrset(static_cast<int>(attribute_of(emphasis)));
  ::mvaddstr(line, column, fitting(text, std::min(width, COLS - column)).c_str());
  ::attrset(A_NORMAL);
}

int Screen::key(int timeout_ms) {
  ::timeout(timeout_ms);
  const int key = ::getch();
  switch (key) {
    case ERR:
      return has_hung_up() ? kKeyGone : kKeyNone;
    case KEY_UP:
      return kKeyUp;
    case KEY_DOWN:
      return kKeyDown;
    case KEY_PPAGE:
      return kKeyPageUp;
    case KEY_NPAGE:
      return kKeyPageDown;
    case KEY_LEFT:
      return kKeyLeft;
    case KEY_RIGHT:
      return kKeyRight;
    case KEY_HOME:
    case KEY_FIND:  // what some terminals send for Home, and below for End
      return kKeyHome;
    case KEY_END:
    case KEY_SELECT:
      return kKeyEnd;
    case KEY_BTAB:
      return kKeyBackTab;
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
