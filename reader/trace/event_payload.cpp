#include "reader/trace/event_payload.hpp"

#include <absl/strings/str_cat.h>

#include <bit>
#include <charconv>

#include "reader/trace/bytes.hpp"
#include "reader/trace/text_escape.hpp"
#include "src/protocol/field_condition.hpp"

namespace arctrace::reader {
namespace {

uint64_t load_number(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | uint64_t(bytes[i]);
  return value;
}

bool append_value(uint32_t type, std::span<const std::byte>& rest, FieldValue& out) {
  std::span<const std::byte> bytes;
  if (!take_field(type, rest, bytes)) return false;
  if (type == ARCTRACE_FIELD_STRING) {
    out.value = as_text(bytes);
    return true;
  }
  const uint64_t number = load_number(bytes);
  switch (type) {
    case ARCTRACE_FIELD_I8:
      out.value = int64_t{static_cast<int8_t>(number)};
      return true;
    case ARCTRACE_FIELD_I16:
      out.value = int64_t{static_cast<int16_t>(number)};
      return true;
    case ARCTRACE_FIELD_I32:
      out.value = int64_t{static_cast<int32_t>(number)};
      return true;
    case ARCTRACE_FIELD_I64:
      out.value = static_cast<int64_t>(number);
      return true;
    case ARCTRACE_FIELD_F32:
      out.value = double{std::bit_cast<float>(static_cast<uint32_t>(number))};
      return true;
    case ARCTRACE_FIELD_F64:
      out.value = std::bit_cast<double>(number);
      return true;
    case ARCTRACE_FIELD_BOOL:
      out.value = number != 0;
      return true;
    default:
      out.value = number;
      return true;
  }
}

void append_text(std::string& out, const FieldValue& field) {
  if (const auto* number = std::get_if<int64_t>(&field.value)) {
    absl::StrAppend(&out, *number);
  } else if (const auto* bits = std::get_if<uint64_t>(&field.value)) {
    if (field.field->type == ARCTRACE_FIELD_X64) {
      absl::StrAppend(&out, "0x", absl::Hex(*bits));
    } else {
      absl::StrAppend(&out, *bits);
    }
  } else if (std::holds_alternative<double>(field.value)) {
    out += real_text(field);
  } else if (const auto* truth = std::get_if<bool>(&field.value)) {
    out += *truth ? "true" : "false";
  } else {
    append_quoted(out, std::get<std::string_view>(field.value));
  }
}

}  // namespace

EventValues decode_event_untrusted(const EventLayout& layout,
                                   std::span<const std::byte> payload) {
  EventValues values;
  std::span<const std::byte> rest = payload;
  for (const EventField& field : layout.fields) {
    FieldValue value;
    value.field = &field;
    if (!append_value(field.type, rest, value)) return values;
    values.fields.push_back(value);
  }
  values.fits = rest.size() < 4;
  return values;
}

std::string real_text(const FieldValue& value) {
  const double real = std::get<double>(value.value);
  char digits[32];
  const auto end = value.field->type == ARCTRACE_FIELD_F32
                       ? std::to_chars(digits, std::end(digits), float(real))
                       : std::to_chars(digits, std::end(digits), real);
  return {digits, end.ptr};
}

void append_event_text(std::string& out, const EventValues& values) {
  for (const FieldValue& value : values.fields) {
    if (&value != values.fields.data()) out += ' ';
    append_escaped(out, value.field->name);
    out += '=';
    append_text(out, value);
  }
}

}  // namespace arctrace::reader
