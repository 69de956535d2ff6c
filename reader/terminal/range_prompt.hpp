// Asks for a range of time in the last line of a screen.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "reader/terminal/screen.hpp"
#include "reader/trace/time_range.hpp"

namespace arctrace::terminal {

class RangePrompt {
 public:
  // What a text means; an error says in one line why it means nothing.
  using Parse = std::function<absl::StatusOr<reader::TimeRange>(std::string_view)>;

  explicit RangePrompt(Parse parse) : parse_(std::move(parse)) {}

  bool is_open() const { return is_open_; }
  void open();
  // What a key does to the text that is typed. The range, once it is there whole: all of
  // the time if nothing was typed. REQUIRES: is_open().
  std::optional<reader::TimeRange> handle(int key);
  // Nothing is seen before Screen::show().
  void draw(Screen& screen) const;

 private:
  const Parse parse_;
  bool is_open_ = false;
  std::string typed_;
  std::string problem_;  // of what was typed last
};

}  // namespace arctrace::terminal
