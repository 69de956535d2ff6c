#include "reader/terminal/range_prompt.hpp"

#include <absl/strings/str_cat.h>

#include "reader/terminal/early_screen.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::terminal {
namespace {

constexpr size_t kTypedMax = 60;

}  // namespace

void RangePrompt::open() {
  is_open_ = true;
  typed_.clear();
  problem_.clear();
}

std::optional<reader::TimeRange> RangePrompt::handle(int key) {
  if (key == Screen::kKeyEscape) is_open_ = false;
  if (key == Screen::kKeyBackspace && !typed_.empty()) typed_.pop_back();
  if (key >= ' ' && key < 0x7F && typed_.size() < kTypedMax) {
    typed_ += static_cast<char>(key);
    problem_.clear();
  }
  if (key != Screen::kKeyEnter) return std::nullopt;
  const absl::StatusOr<reader::TimeRange> range =
      typed_.empty() ? reader::TimeRange{} : parse_(typed_);
  if (!range.ok()) {
    problem_ = reader::escaped(std::string(range.status().message()));
    return std::nullopt;
  }
  is_open_ = false;
  return *range;
}

void RangePrompt::draw(Screen& screen) const {
  draw_last_line(screen, absl::StrCat("time range, START~STOP: ", typed_, "_",
                                      problem_.empty() ? "" : "  ", problem_));
}

}  // namespace arctrace::terminal
