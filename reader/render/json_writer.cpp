#include "reader/render/json_writer.hpp"

#include <absl/strings/str_cat.h>

#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

constexpr size_t kBufferSize = 1 << 16;

}  // namespace

void JsonWriter::begin(char open, char close) {
  before_value();
  buffer_ += open;
  closers_ += close;
  comma_ = false;
}

void JsonWriter::end() {
  buffer_ += closers_.back();
  closers_.pop_back();
  comma_ = true;
  if (buffer_.size() >= kBufferSize) flush();
}

JsonWriter& JsonWriter::key(std::string_view name) {
  before_value();
  append_json_string(buffer_, name);
  buffer_ += ':';
  comma_ = false;
  return *this;
}

void JsonWriter::text(std::string_view value) {
  before_value();
  append_json_string(buffer_, value);
}

void JsonWriter::number(uint64_t value) {
  before_value();
  absl::StrAppend(&buffer_, value);
}

void JsonWriter::number(int64_t value) {
  before_value();
  absl::StrAppend(&buffer_, value);
}

void JsonWriter::boolean(bool value) {
  before_value();
  buffer_ += value ? "true" : "false";
}

void JsonWriter::before_value() {
  if (comma_) buffer_ += ',';
  comma_ = true;
}

void JsonWriter::flush() {
  if (good_) good_ = write_(buffer_);
  buffer_.clear();
}

void JsonWriter::finish() {
  buffer_ += '\n';
  flush();
}

}  // namespace arctrace::reader
