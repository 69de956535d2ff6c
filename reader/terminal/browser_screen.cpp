#include "reader/terminal/browser_screen.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "reader/render/text_style.hpp"

namespace arctrace::terminal {
namespace {

using reader::BrowserCommand;
using reader::BrowserView;

Emphasis emphasis_of(const reader::PageLine& line) {
  if (line.is_head) return Emphasis::kReverse;
  if (line.is_chosen) return Emphasis::kBold;
  switch (line.emphasis) {
    case reader::RowEmphasis::kBold:
      return Emphasis::kBold;
    case reader::RowEmphasis::kDim:
      return Emphasis::kDim;
    case reader::RowEmphasis::kHot:
      return Emphasis::kHot;
    case reader::RowEmphasis::kTrouble:
      return Emphasis::kTrouble;
    case reader::RowEmphasis::kPlain:
      break;
  }
  return Emphasis::kPlain;
}

std::optional<BrowserCommand> command_of(int key) {
  switch (key) {
    case Screen::kKeyUp:
    case 'k':
      return BrowserCommand::kUp;
    case Screen::kKeyDown:
    case 'j':
      return BrowserCommand::kDown;
    case Screen::kKeyPageUp:
      return BrowserCommand::kPageUp;
    case Screen::kKeyPageDown:
      return BrowserCommand::kPageDown;
    case Screen::kKeyHome:
    case 'g':
      return BrowserCommand::kFirst;
    case Screen::kKeyEnd:
    case 'G':
      return BrowserCommand::kLast;
    case Screen::kKeyEnter:
      return BrowserCommand::kEnter;
    case Screen::kKeyBackspace:
      return BrowserCommand::kBack;
    case Screen::kKeyEscape:
      return BrowserCommand::kEscape;
    case Screen::kKeyRight:
      return BrowserCommand::kRight;
    case Screen::kKeyLeft:
      return BrowserCommand::kLeft;
    case ' ':
      return BrowserCommand::kToggle;
    case 'e':
      return BrowserCommand::kUnfoldAll;
    case 'c':
      return BrowserCommand::kFoldAll;
    case '\t':
      return BrowserCommand::kNextView;
    case Screen::kKeyBackTab:
      return BrowserCommand::kPreviousView;
    case 's':
    case '>':
      return BrowserCommand::kSortNext;
    case '<':
      return BrowserCommand::kSortPrevious;
    case 'r':
      return BrowserCommand::kReverse;
    case 'p':
      return BrowserCommand::kGroup;
    case '/':
      return BrowserCommand::kSearch;
    case 'n':
      return BrowserCommand::kNextMatch;
    case 'N':
      return BrowserCommand::kPreviousMatch;
    case '?':
    case 'h':
      return BrowserCommand::kHelp;
    default:
      return std::nullopt;
  }
}

}  // namespace

void BrowserScreen::draw() {
  reader::TextStyle style;
  style.width = static_cast<size_t>(std::max(screen_.columns(), 1));
  style.utf8 = screen_.is_utf8();
  const auto height = static_cast<size_t>(std::max(screen_.lines(), 1));
  screen_.clear();
  int at = 0;
  for (const reader::PageLine& line : browser_.picture(height, style)) {
    std::string text = line.text;
    if (line.is_head) text.resize(std::max(text.size(), style.width), ' ');
    screen_.put(at++, 0, screen_.columns(), text, emphasis_of(line));
  }
}

void BrowserScreen::handle_typed(int key) {
  if (key == Screen::kKeyEnter) {
    browser_.accept();
  } else if (key == Screen::kKeyEscape) {
    browser_.run(BrowserCommand::kEscape);
  } else if (key == Screen::kKeyBackspace) {
    browser_.erase();
  } else if (key >= ' ' && key < 0x7F) {
    browser_.type(static_cast<char>(key));
  }
}

bool BrowserScreen::handle(int key) {
  if (key == Screen::kKeyNone) return true;
  if (key == Screen::kKeyGone) return false;
  if (key == Screen::kKeyResize) {
    screen_.redraw();
    return true;
  }
  if (browser_.is_typing()) {
    handle_typed(key);
    return true;
  }
  if (key == 'q') return false;
  if (key >= '1' && key < '1' + static_cast<int>(reader::kBrowserViews)) {
    browser_.show(static_cast<BrowserView>(key - '1'));
    return true;
  }
  if (const std::optional<BrowserCommand> command = command_of(key)) {
    browser_.run(*command);
  }
  return true;
}

}  // namespace arctrace::terminal
