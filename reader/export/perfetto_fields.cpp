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

template <class Write>
void AnnotationFields::add(std::string_view name, std::string_view element,
                           const Write& write) {
  if (in_list_) {
    if (!list_.empty()) list_ += ", ";
    list_ += element;
    return;
  }
  pbf_writer event(event_);
  pbf_writer annotation(event, event::kAnnotation);
  annotation.add_string(annotation::kName, export_name(name));
  write(annotation);
}

void AnnotationFields::title(std::string_view name, std::string_view value) {
  // Of a record that is about a call, its event has the name already.
  if (name == "function") return text(name, value);
  title_ = value;
}

void AnnotationFields::text(std::string_view name, std::string_view value) {
  const std::string safe = export_name(value);
  add(name, safe, [&](pbf_writer& out) { out.add_string(annotation::kString, safe); });
}

void AnnotationFields::number(std::string_view name, uint64_t value) {
  add(name, absl::StrCat(value),
      [&](pbf_writer& out) { out.add_uint64(annotation::kUnsigned, value); });
}

void AnnotationFields::signed_number(std::string_view name, int64_t value) {
  add(name, absl::StrCat(value),
      [&](pbf_writer& out) { out.add_int64(annotation::kSigned, value); });
}

void AnnotationFields::hex(std::string_view name, uint64_t value) {
  add(name, absl::StrCat("0x", absl::Hex(value)),
      [&](pbf_writer& out) { out.add_uint64(annotation::kPointer, value); });
}

void AnnotationFields::real(std::string_view name, std::string_view digits) {
  double value = 0;
  if (!absl::SimpleAtod(std::string(digits), &value)) return text(name, digits);
  add(name, digits, [&](pbf_writer& out) { out.add_double(annotation::kDouble, value); });
}

void AnnotationFields::boolean(std::string_view name, bool value) {
  add(name, value ? "true" : "false",
      [&](pbf_writer& out) { out.add_bool(annotation::kBool, value); });
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
