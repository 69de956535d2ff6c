// What a recording has to say while it runs. It prints nothing itself: its caller does,
// or shows it in another way.
#pragma once

#include <string>

namespace arctrace::recording {

// Each function gets a line of text, without a newline at its end; it may go on in
// further lines, which begin with two spaces. Both may be called by several threads at
// once. By themselves they do nothing.
class Events {
 public:
  Events() = default;
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  virtual ~Events() = default;

  // Something is not as it was asked for: what the recording goes on without, and why.
  virtual void warn(const std::string& /*line*/) {}
  // Something has happened: a process has joined, a snapshot has been taken.
  virtual void tell(const std::string& /*line*/) {}
};

}  // namespace arctrace::recording
