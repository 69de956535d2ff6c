// What a recording tells its caller while it runs. It prints nothing itself: its caller
// prints the messages, or shows them in another way.
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

  // The recording goes on without something that was asked for: what that is, and why.
  virtual void warn(const std::string& /*line*/) {}
  // Something has happened: a process has joined, a snapshot has been taken.
  virtual void tell(const std::string& /*line*/) {}
};

}  // namespace arctrace::recording
