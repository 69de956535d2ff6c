// Decodes the payload of an event by its layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "reader/trace/record.hpp"

namespace arctrace::reader {

struct FieldValue {
  const EventField* field = nullptr;
  // By the field's type: signed, unsigned or X64, floating, BOOL, STRING (raw bytes).
  std::variant<int64_t, uint64_t, double, bool, std::string_view> value;
};

struct EventValues {
  std::vector<FieldValue> fields;  // as far as the payload has them
  // Whether the payload is as long as the layout, but for up to 3 bytes that fill its
  // last word.
  bool fits = false;
};

// `payload` is what follows the event id. The result has views into `payload` and
// pointers into `layout`.
EventValues decode_event_untrusted(const EventLayout& layout,
                                   std::span<const std::byte> payload);

// The shortest decimal form that reads back as the field's floating value, or inf, nan.
// REQUIRES: the value is a double.
std::string real_text(const FieldValue& value);

// Appends "name=value name=value", strings quoted and escaped for a terminal.
void append_event_text(std::string& out, const EventValues& values);

}  // namespace arctrace::reader
