#include "reader/render/terminal.hpp"

#include <absl/strings/str_format.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "reader/render/output.hpp"

namespace arctrace::reader {
namespace {

volatile std::sig_atomic_t got_interrupt = 0;

bool is_terminal_for_color() {
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return false;
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  return !dumb && ::isatty(STDOUT_FILENO) == 1;
}

// Reads the variable that decides on characters, as setlocale() does.
bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string_view locale = value;
    for (const char* codeset : {"UTF-8", "utf8", "UTF8", "utf-8"}) {
      if (locale.find(codeset) != std::string_view::npos) return true;
    }
    return false;
  }
  return false;
}

}  // namespace

TextStyle terminal_style(ColorMode color, bool wide) {
  TextStyle style;
  style.color = color == ColorMode::kAlways ||
                (color == ColorMode::kAuto && is_terminal_for_color());
  style.utf8 = locale_is_utf8();
  style.whole = wide;
  winsize size{};
  if (!wide && ::isatty(STDOUT_FILENO) == 1 &&
      ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
    style.width = size.ws_col;
  }
  return style;
}

std::string progress_text(uint64_t records, double share, double seconds) {
  const double read = static_cast<double>(records) / 1e6;
  if (share <= 0) return absl::StrFormat("arctrace: %.1f million records read", read);
  const double done = std::min(share, 0.999);
  return absl::StrFormat(
      "arctrace: %.0f %%, %.1f million records read, %.1f million a second, %.0f s left",
      100 * done, read, read / seconds, seconds * (1 - done) / done);
}

Progress::Progress(bool wanted)
    : wanted_(wanted && verbosity() != Verbosity::kQuiet && ::isatty(STDERR_FILENO) == 1),
      start_(Clock::now()),
      next_(start_ + std::chrono::seconds(1)) {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
}

void Progress::update(uint64_t records, double share) {
  const Clock::time_point now = Clock::now();
  if (!wanted_ || now < next_) return;
  next_ = now + std::chrono::milliseconds(200);
  shown_ = true;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  std::fprintf(stderr, "\r%s\x1b[K", progress_text(records, share, seconds).c_str());
}

InterruptWatch::InterruptWatch() {
  got_interrupt = 0;
  struct sigaction action {};
  action.sa_handler = [](int) { got_interrupt = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, &before_);
}

InterruptWatch::~InterruptWatch() { ::sigaction(SIGINT, &before_, nullptr); }

bool InterruptWatch::interrupted() { return got_interrupt != 0; }

}  // namespace arctrace::reader
