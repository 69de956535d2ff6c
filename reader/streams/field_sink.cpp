#include "reader/streams/field_sink.hpp"

#include <absl/strings/str_cat.h>
#include <arctrace/format.h>

#include <vector>

#include "reader/trace/call_args.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

// Writes a number; a string if the number has a name or is an address; a program's string
// as it is; an object for a string that was cut or could not be read.
void write_call_arg(const CallArg& arg, JsonWriter& json) {
  const auto write_object = [&json](const char* name, std::string_view text) {
    json.begin_object();
    json.member(name, text);
    json.end();
  };
  if (const std::string word = arg_word(arg); !word.empty()) {
    return json.value(word);
  }
  switch (arg.kind) {
    case ARCTRACE_VALUE_STRING:
      return json.value(std::string_view(arg.bytes));
    case ARCTRACE_VALUE_STRING_CUT:
      return write_object("cut", arg.bytes);
    case ARCTRACE_VALUE_STRING_LOST:
      return write_object("unreadable", arg_text(arg));
    case ARCTRACE_VALUE_CHAR: {
      const char c = static_cast<char>(arg.number);
      return json.value(std::string_view(&c, 1));
    }
    case ARCTRACE_VALUE_POINTER:
      if (arg.number == 0) return json.value(nullptr);
      [[fallthrough]];
    case ARCTRACE_VALUE_HEX:
      return json.value(arg_text(arg));
    case ARCTRACE_VALUE_FLOAT:
      return json.digits(float_digits(arg));
    case ARCTRACE_VALUE_BOOL:
      return json.value(arg.number != 0);
    case ARCTRACE_VALUE_UNSIGNED:
    case ARCTRACE_VALUE_OCTAL:
      return json.value(arg.number);
    default:
      if (is_number_kind(arg.kind)) return json.value(arg.signed_number);
      return json.value(arg_text(arg));
  }
}

}  // namespace

std::string field_text(const ShownValue& value) {
  switch (value.kind) {
    case ShownValue::Kind::kNumber:
      return absl::StrCat(value.number);
    case ShownValue::Kind::kSigned:
      return absl::StrCat(static_cast<int64_t>(value.number));
    case ShownValue::Kind::kHex:
      return absl::StrCat("0x", absl::Hex(value.number));
    case ShownValue::Kind::kBoolean:
      return value.number != 0 ? "true" : "false";
    case ShownValue::Kind::kText:
    case ShownValue::Kind::kReal:
      break;
  }
  return std::string(value.text);
}

// ---- Text ----

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

void TextFields::field(std::string_view name, const ShownValue& value) {
  key(name);
  if (value.kind != ShownValue::Kind::kText) {
    out_ += field_text(value);
  } else if (in_list_) {
    append_escaped(out_, value.text);
  } else {
    append_quoted(out_, value.text);
  }
}

void TextFields::begin_list(std::string_view name) {
  key(name);
  out_ += '[';
  first_ = in_list_ = true;
}

void TextFields::begin_object(std::string_view /*name*/) {}

void TextFields::end() {
  if (!in_list_) return;
  out_ += ']';
  first_ = in_list_ = false;
}

void TextFields::args(std::span<const std::byte> body, std::string_view names) {
  out_ += args_text(body, names);
  first_ = false;
}

void TextFields::retval(std::span<const std::byte> body, std::string_view names) {
  out_ += retval_text(body, names);
  first_ = false;
}

// ---- JSON ----

JsonWriter& JsonFields::item(std::string_view name) {
  return json_.in_array() ? json_ : json_.key(name);
}

void JsonFields::title(std::string_view name, std::string_view value) {
  text(name, value);
}

void JsonFields::field(std::string_view name, const ShownValue& value) {
  JsonWriter& json = item(name);
  switch (value.kind) {
    case ShownValue::Kind::kNumber:
      return json.value(value.number);
    case ShownValue::Kind::kSigned:
      return json.value(static_cast<int64_t>(value.number));
    case ShownValue::Kind::kReal:
      return json.digits(value.text);
    case ShownValue::Kind::kBoolean:
      return json.value(value.number != 0);
    case ShownValue::Kind::kText:
    case ShownValue::Kind::kHex:
      break;
  }
  json.value(field_text(value));
}

void JsonFields::begin_list(std::string_view name) { item(name).begin_array(); }

void JsonFields::begin_object(std::string_view name) { item(name).begin_object(); }

void JsonFields::end() { json_.end(); }

void JsonFields::args(std::span<const std::byte> body, std::string_view names) {
  const std::vector<CallArg> args = decode_args(body, names);
  json_.key("args").begin_array();
  for (const CallArg& arg : args) write_call_arg(arg, json_);
  json_.end();
  if (args.empty() || args.front().name.empty()) return;
  json_.key("arg_names").begin_array();
  for (const CallArg& arg : args) json_.value(std::string_view(arg.name));
  json_.end();
}

void JsonFields::retval(std::span<const std::byte> body, std::string_view names) {
  const std::vector<CallArg> values = decode_args(body, names);
  if (values.empty()) return;
  CallArg first = values.front();
  const bool is_error_number = first.kind == ARCTRACE_VALUE_ERRNO;
  if (is_error_number) first.kind = ARCTRACE_VALUE_SIGNED;
  json_.key("retval");
  write_call_arg(first, json_);
  if (const int64_t error = errno_of(values); error != 0) {
    json_.member("errno", errno_word(error));
  }
}

std::string content_text(const DescribeRecord& describe, const Record& record) {
  std::string text;
  TextFields fields(text);
  describe(record, fields);
  return text;
}

std::string content_members(const DescribeRecord& describe, const Record& record) {
  return json_members([&](JsonWriter& json) {
    JsonFields fields(json);
    describe(record, fields);
  });
}

}  // namespace arctrace::reader
