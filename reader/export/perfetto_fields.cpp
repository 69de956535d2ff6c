#include "reader/export/perfetto_fields.hpp"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <arctrace/format.h>

#include <protozero/pbf_writer.hpp>
#include <vector>

#include "reader/export/export_names.hpp"
#include "reader/trace/call_args.hpp"

namespace arctrace::reader::perfetto {
namespace {

using protozero::pbf_writer;

}  // namespace

void AnnotationFields::title(std::string_view name, std::string_view value) {
  text(name, value);
}

void AnnotationFields::field(std::string_view name, const ShownValue& value) {
  if (in_list_) {
    if (!list_.empty()) list_ += ", ";
    list_ += field_text(value);
    return;
  }
  pbf_writer event(event_);
  pbf_writer annotation(event, event::kAnnotation);
  annotation.add_string(annotation::kName, safe_name(name));
  switch (value.kind) {
    case ShownValue::Kind::kNumber:
      return annotation.add_uint64(annotation::kUnsigned, value.number);
    case ShownValue::Kind::kSigned:
      return annotation.add_int64(annotation::kSigned,
                                  static_cast<int64_t>(value.number));
    case ShownValue::Kind::kHex:
      return annotation.add_uint64(annotation::kPointer, value.number);
    case ShownValue::Kind::kBoolean:
      return annotation.add_bool(annotation::kBool, value.number != 0);
    case ShownValue::Kind::kReal:
      if (double real = 0; absl::SimpleAtod(std::string(value.text), &real)) {
        return annotation.add_double(annotation::kDouble, real);
      }
      break;
    case ShownValue::Kind::kText:
      break;
  }
  annotation.add_string(annotation::kString, safe_name(value.text));
}

void AnnotationFields::begin_list(std::string_view name) {
  in_list_ = true;
  list_name_ = name;
  list_.clear();
}

void AnnotationFields::begin_object(std::string_view /*name*/) {}

void AnnotationFields::end() {
  if (!in_list_) return;
  in_list_ = false;
  text(list_name_, list_);
}

void AnnotationFields::args(std::span<const std::byte> body, std::string_view names) {
  for (const CallArg& arg : decode_args(body, names)) {
    const std::string name =
        arg.name.empty() ? absl::StrCat("arg", arg.index) : std::string(arg.name);
    if (arg.kind == ARCTRACE_VALUE_SIGNED && arg.words.empty()) {
      signed_number(name, arg.signed_number);
    } else {
      text(name, arg_text(arg));
    }
  }
}

void AnnotationFields::retval(std::span<const std::byte> body, std::string_view names) {
  const std::vector<CallArg> values = decode_args(body, names);
  if (values.empty()) return;
  CallArg first = values.front();
  if (first.kind == ARCTRACE_VALUE_ERRNO) first.kind = ARCTRACE_VALUE_SIGNED;
  if (first.kind == ARCTRACE_VALUE_SIGNED && first.words.empty()) {
    signed_number("retval", first.signed_number);
  } else {
    text("retval", arg_text(first));
  }
  const CallArg& error = values.back();
  if (error.kind == ARCTRACE_VALUE_ERRNO && error.number != 0) {
    text("errno", errno_word(error.signed_number));
  }
}

}  // namespace arctrace::reader::perfetto
