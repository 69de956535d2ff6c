// The keys on the screen of `arctrace live`.
#include <algorithm>
#include <cstddef>
#include <utility>

#include "reader/terminal/live_screen.hpp"

namespace arctrace::terminal {
namespace {

using reader::LiveSort;
using reader::LiveTable;

constexpr size_t kFilterMax = 100;

LiveSort next_sort(LiveSort sort, bool has_cpu) {
  constexpr int kSorts = static_cast<int>(LiveSort::kName) + 1;
  const auto next = static_cast<LiveSort>((static_cast<int>(sort) + 1) % kSorts);
  return next == LiveSort::kCpu && !has_cpu ? LiveSort::kTotal : next;
}

}  // namespace

void LiveScreen::handle_filter(int key) {
  if (key == Screen::kKeyEnter) {
    is_typing_ = false;
  } else if (key == Screen::kKeyEscape) {
    is_typing_ = false;
    filter_.clear();
  } else if (key == Screen::kKeyBackspace) {
    if (!filter_.empty()) filter_.pop_back();
  } else if (key >= ' ' && key < 0x7F && filter_.size() < kFilterMax) {
    filter_ += static_cast<char>(key);
  }
}

// Chooses the row that is so many lines below the chosen one, and shows it.
void LiveScreen::choose(int lines_on) {
  if (rows_.empty()) return;
  size_t at = 0;
  while (at < rows_.size() && rows_[at].name != chosen_) ++at;
  const bool is_any_chosen = at < rows_.size();
  const auto last = static_cast<int64_t>(rows_.size()) - 1;
  const int64_t wanted =
      is_any_chosen ? static_cast<int64_t>(at) + lines_on : static_cast<int64_t>(top_);
  at = static_cast<size_t>(std::clamp<int64_t>(wanted, 0, last));
  chosen_ = rows_[at].name;
  const int around = std::max(screen_.lines() / 3, 1);
  if (at < top_) top_ = at;
  if (at >= top_ + static_cast<size_t>(around))
    top_ = at + 1 - static_cast<size_t>(around);
}

void LiveScreen::drill_down() {
  if (!through_.empty() || table_ == LiveTable::kPaths) return;
  if (chosen_.empty()) choose(0);
  through_ = std::exchange(chosen_, {});
  filter_.clear();
  top_ = 0;
}

void LiveScreen::drill_up() {
  if (through_.empty()) {
    filter_.clear();
  } else {
    chosen_ = std::exchange(through_, {});
  }
  top_ = 0;
}

bool LiveScreen::handle(int key) {
  if (key == Screen::kKeyNone) return true;
  if (key == Screen::kKeyGone) return false;
  if (is_typing_) {
    handle_filter(key);
    return true;
  }
  note_.clear();
  const int page = std::max(screen_.lines() / 2, 1);
  switch (key) {
    case 'q':
      return false;
    case 'p':
      model_.set_paused(!model_.is_paused());
      break;
    case 's':
      sort_ = next_sort(sort_, model_.has_cpu());
      break;
    case 'v':
      table_ =
          table_ == LiveTable::kFunctions ? LiveTable::kPaths : LiveTable::kFunctions;
      through_.clear();
      chosen_.clear();
      top_ = 0;
      break;
    case '/':
      is_typing_ = true;
      filter_.clear();
      break;
    case 't':
      thread_ = model_.threads().empty() ? 0 : (thread_ + 1) % model_.threads().size();
      break;
    case 'k':
      shows_stack_ = !shows_stack_;
      break;
    case 'S':
      note_ = snapshot_();
      screen_.redraw();
      break;
    case Screen::kKeyUp:
      choose(-1);
      break;
    case Screen::kKeyDown:
      choose(1);
      break;
    case Screen::kKeyPageUp:
      choose(-page);
      break;
    case Screen::kKeyPageDown:
      choose(page);
      break;
    case Screen::kKeyEnter:
      drill_down();
      break;
    case Screen::kKeyEscape:
    case Screen::kKeyBackspace:
      drill_up();
      break;
    case Screen::kKeyResize:
      screen_.redraw();
      break;
    default:
      break;
  }
  return true;
}

}  // namespace arctrace::terminal
