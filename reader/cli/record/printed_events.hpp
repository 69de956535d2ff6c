// Prints the messages of a recording, as lines on standard error.
#pragma once

#include <absl/strings/str_cat.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "reader/render/output.hpp"
#include "src/recording/events.hpp"
#include "src/recording/options.hpp"

namespace arctrace::cli {

class PrintedEvents : public recording::Events {
 public:
  PrintedEvents() = default;
  // Prints the lines that are waiting.
  ~PrintedEvents() override { release(); }

  void warn(const std::string& line) override { add(true, line); }
  void tell(const std::string& line) override { add(false, line); }

  // From here to release() lines wait, so that they do not disturb a screen: the first
  // thousand.
  void hold() {
    const std::lock_guard lock(mutex_);
    is_deferring_ = true;
  }
  void release() {
    const std::lock_guard lock(mutex_);
    is_deferring_ = false;
    for (const auto& [is_warning, line] : deferred_) print(is_warning, line);
    if (left_out_ != 0) {
      reader::print_warning(absl::StrCat(
          left_out_, " more lines came while there was a screen, and were not kept"));
    }
    deferred_.clear();
    left_out_ = 0;
  }

 private:
  void add(bool is_warning, const std::string& line) {
    constexpr size_t kDeferredMax = 1000;
    const std::lock_guard lock(mutex_);
    if (!is_deferring_) return print(is_warning, line);
    if (deferred_.size() < kDeferredMax) {
      deferred_.emplace_back(is_warning, line);
    } else {
      ++left_out_;
    }
  }
  static void print(bool is_warning, const std::string& line) {
    if (is_warning) {
      reader::print_warning(line);
    } else {
      reader::print_message(line);
    }
  }

  std::mutex mutex_;
  bool is_deferring_ = false;
  std::vector<std::pair<bool, std::string>> deferred_;
  uint64_t left_out_ = 0;  // since hold()
};

}  // namespace arctrace::cli
