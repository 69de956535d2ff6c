#include "reader/render/field_sink.hpp"

#include <absl/strings/str_cat.h>

#include <cctype>

#include "reader/trace/call_args.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::cli {

using reader::append_escaped;
using reader::append_json_string;

namespace {

// JSON has no infinity: a string then.
void append_json_real(std::string& out, std::string_view digits) {
  const bool finite = std::isdigit(static_cast<unsigned char>(digits.back())) != 0;
  if (!finite) out += '"';
  out += digits;
  if (!finite) out += '"';
}

// A number, or a string if it has a name or is an address; a string of the program's as
// it is; what was cut or could not be read as an object that says so.
void append_json_arg(std::string& out, const reader::CallArg& arg) {
  const auto member = [&out](const char* name, std::string_view text) {
    absl::StrAppend(&out, "{\"", name, "\":");
    append_json_string(out, text);
    out += '}';
  };
  if (const std::string word = reader::arg_word(arg); !word.empty()) {
    append_json_string(out, word);
    return;
  }
  switch (arg.kind) {
    case ARCTRACE_VALUE_STRING:
      append_json_string(out, arg.bytes);
      return;
    case ARCTRACE_VALUE_STRING_CUT:
      return member("cut", arg.bytes);
    case ARCTRACE_VALUE_STRING_LOST:
      return member("unreadable", reader::arg_text(arg));
    case ARCTRACE_VALUE_CHAR: {
      const char c = static_cast<char>(arg.number);
      append_json_string(out, {&c, 1});
      return;
    }
    case ARCTRACE_VALUE_POINTER:
      if (arg.number == 0) {
        out += "null";
        return;
      }
      [[fallthrough]];
    case ARCTRACE_VALUE_HEX:
      append_json_string(out, reader::arg_text(arg));
      return;
    case ARCTRACE_VALUE_FLOAT:
      return append_json_real(out, reader::float_digits(arg));
    case ARCTRACE_VALUE_BOOL:
      out += reader::arg_text(arg);
      return;
    case ARCTRACE_VALUE_UNSIGNED:
    case ARCTRACE_VALUE_OCTAL:
      absl::StrAppend(&out, arg.number);
      return;
    default:
      if (reader::is_number_kind(arg.kind)) {
        absl::StrAppend(&out, arg.signed_number);
      } else {
        append_json_string(out, reader::arg_text(arg));
      }
  }
}

}  // namespace

void LineFields::number(std::string_view name, uint64_t value) {
  key(name);
  absl::StrAppend(&out_, value);
}

void LineFields::signed_number(std::string_view name, int64_t value) {
  key(name);
  absl::StrAppend(&out_, value);
}

void LineFields::boolean(std::string_view name, bool value) {
  key(name);
  out_ += value ? "true" : "false";
}

void LineFields::begin_list(std::string_view name) {
  key(name);
  out_ += '[';
  first_ = in_list_ = true;
}

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

void TextFields::hex(std::string_view name, uint64_t value) {
  key(name);
  absl::StrAppend(&out_, "0x", absl::Hex(value));
}

void TextFields::real(std::string_view name, std::string_view digits) {
  key(name);
  out_ += digits;
}

void TextFields::arguments(std::span<const std::byte> body, std::string_view names) {
  out_ += reader::args_text(body, names);
  first_ = false;
}

void TextFields::result(std::span<const std::byte> body, std::string_view names) {
  out_ += reader::retval_text(body, names);
  first_ = false;
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

void JsonFields::hex(std::string_view name, uint64_t value) {
  key(name);
  absl::StrAppend(&out_, "\"0x", absl::Hex(value), "\"");
}

void JsonFields::real(std::string_view name, std::string_view digits) {
  key(name);
  append_json_real(out_, digits);
}

void JsonFields::arguments(std::span<const std::byte> body, std::string_view names) {
  const std::vector<reader::CallArg> args = reader::decode_args(body, names);
  begin_list("args");
  for (const reader::CallArg& arg : args) {
    key("");
    append_json_arg(out_, arg);
  }
  end();
  if (args.empty() || args.front().name.empty()) return;
  begin_list("arg_names");
  for (const reader::CallArg& arg : args) text("", arg.name);
  end();
}

void JsonFields::result(std::span<const std::byte> body, std::string_view names) {
  const std::vector<reader::CallArg> args = reader::decode_args(body, names);
  if (args.empty()) return;
  reader::CallArg first = args.front();
  const bool is_error_number = first.kind == ARCTRACE_VALUE_ERRNO;
  if (is_error_number) first.kind = ARCTRACE_VALUE_SIGNED;
  key("retval");
  append_json_arg(out_, first);
  const reader::CallArg& error = args.back();
  if (error.kind == ARCTRACE_VALUE_ERRNO && error.number != 0) {
    text("errno", reader::errno_word(error.signed_number));
  }
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
