// Ends a program that cannot go on, with a message that says why.
#pragma once

#include <cstdint>

namespace arctrace {

// A part of a message: a text, followed by a number unless that is absent.
struct MessagePart {
  const char* text;
  uint64_t number;
  bool has_number;
  MessagePart(const char* what)  // NOLINT(google-explicit-constructor)
      : text(what), number(0), has_number(false) {}
  MessagePart(const char* what, uint64_t value)
      : text(what), number(value), has_number(true) {}
};

// Writes the parts, with their numbers in hexadecimal, as one line to standard error.
// Then ends the process with SIGABRT, whatever handler the program has for that. Uses no
// libc, so that it can be called from any hook.
template <uint32_t count>
[[noreturn]] void stop_program(const MessagePart (&parts)[count]);
[[noreturn]] void stop_program(const MessagePart* parts, uint32_t count);

template <uint32_t count>
[[noreturn]] void stop_program(const MessagePart (&parts)[count]) {
  stop_program(parts, count);
}

}  // namespace arctrace
