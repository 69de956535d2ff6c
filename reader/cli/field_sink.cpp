#include "reader/cli/field_sink.hpp"

#include <absl/strings/str_cat.h>

#include <cctype>

#include "reader/trace/text_escape.hpp"

namespace arctrace::cli {

using reader::append_escaped;
using reader::append_json_string;

void TextFields::separate() {
  if (!first_) out_ += in_list_ ? ", " : " ";
  first_ = false;
}

void TextFields::key(std::string_view name) {
  separate();
  if (in_list_) return;
  append_escaped(out_, name);
  out_ += '=';
}

void TextFields::title(std::string_view /*name*/, std::string_view value) {
  separate();
  append_escaped(out_, value);
}

void TextFields::text(std::string_view name, std::string_view value) {
  key(name);
  if (in_list_) {
    append_escaped(out_, value);
  } else {
    reader::append_quoted(out_, value);
  }
}

void TextFields::number(std::string_view name, uint64_t value) {
  key(name);
  absl::StrAppend(&out_, value);
}

void TextFields::signed_number(std::string_view name, int64_t value) {
  key(name);
  absl::StrAppend(&out_, value);
}

void TextFields::hex(std::string_view name, uint64_t value) {
  key(name);
  absl::StrAppend(&out_, "0x", absl::Hex(value));
}

void TextFields::real(std::string_view name, std::string_view digits) {
  key(name);
  out_ += digits;
}

void TextFields::boolean(std::string_view name, bool value) {
  key(name);
  out_ += value ? "true" : "false";
}

void TextFields::begin_list(std::string_view name) {
  key(name);
  out_ += '[';
  first_ = in_list_ = true;
}

// Its members stand in the line as the record's own.
void TextFields::begin_object(std::string_view /*name*/) {}

void TextFields::end() {
  if (!in_list_) return;
  out_ += ']';
  first_ = in_list_ = false;
}

void JsonFields::key(std::string_view name) {
  if (!first_) out_ += ',';
  first_ = false;
  if (in_list_) return;
  append_json_string(out_, name);
  out_ += ':';
}

void JsonFields::title(std::string_view name, std::string_view value) {
  text(name, value);
}

void JsonFields::text(std::string_view name, std::string_view value) {
  key(name);
  append_json_string(out_, value);
}

void JsonFields::number(std::string_view name, uint64_t value) {
  key(name);
  absl::StrAppend(&out_, value);
}

void JsonFields::signed_number(std::string_view name, int64_t value) {
  key(name);
  absl::StrAppend(&out_, value);
}

void JsonFields::hex(std::string_view name, uint64_t value) {
  key(name);
  absl::StrAppend(&out_, "\"0x", absl::Hex(value), "\"");
}

// JSON has no infinity: a string then.
void JsonFields::real(std::string_view name, std::string_view digits) {
  key(name);
  const bool finite = std::isdigit(static_cast<unsigned char>(digits.back())) != 0;
  if (!finite) out_ += '"';
  out_ += digits;
  if (!finite) out_ += '"';
}

void JsonFields::boolean(std::string_view name, bool value) {
  key(name);
  out_ += value ? "true" : "false";
}

void JsonFields::begin_list(std::string_view name) {
  key(name);
  out_ += '[';
  first_ = in_list_ = true;
}

void JsonFields::begin_object(std::string_view name) {
  key(name);
  out_ += '{';
  first_ = true;
}

void JsonFields::end() {
  out_ += in_list_ ? ']' : '}';
  first_ = in_list_ = false;
}

}  // namespace arctrace::cli
