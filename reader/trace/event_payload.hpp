// An event's payload, taken apart by its layout.
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
  // Signed, unsigned (X64 too), floating, BOOL, STRING (raw bytes of the payload).
  std::variant<int64_t, uint64_t, double, bool, std::string_view> value;
};

struct EventValues {
  std::vector<FieldValue> fields;  // those that the payload holds
  // The payload ends where the layout does, but for up to 3 bytes that fill its last
  // word; else it is too short for the layout, or too long.
  bool fits = false;
};

// `payload` is what stands behind the event id. Views point into `payload`, pointers into
// `layout`.
EventValues decode_event_untrusted(const EventLayout& layout,
                                   std::span<const std::byte> payload);

// The shortest decimal digits that read back as the field's floating value; inf, nan.
// REQUIRES: its value is a double.
std::string real_text(const FieldValue& value);

// Appends "name=value name=value", strings quoted and escaped for a terminal.
void append_event_text(std::string& out, const EventValues& values);

}  // namespace arctrace::reader
