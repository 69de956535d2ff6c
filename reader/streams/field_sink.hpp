// The fields of one record on their way into a line of text or an object of JSON, and the
// form in which views of single records get them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "reader/streams/json_writer.hpp"
#include "reader/trace/record.hpp"

namespace arctrace::reader {

// A value of a field, and the form in which it is shown.
struct ShownValue {
  enum class Kind : uint8_t { kText, kNumber, kSigned, kHex, kReal, kBoolean };
  Kind kind;
  std::string_view text;  // of kText: raw bytes of the trace; of kReal: its digits
  uint64_t number = 0;    // of the others; of kSigned: as two's complement
};

// The value in decimal, 0x1f, or true; text as it is.
std::string field_text(const ShownValue& value);

// Takes the fields of one record, one after another. Text is raw bytes of the trace.
class FieldSink {
 public:
  virtual ~FieldSink() = default;

  void text(std::string_view name, std::string_view value) {
    field(name, {ShownValue::Kind::kText, value});
  }
  void number(std::string_view name, uint64_t value) {
    field(name, {ShownValue::Kind::kNumber, {}, value});
  }
  void signed_number(std::string_view name, int64_t value) {
    field(name, {ShownValue::Kind::kSigned, {}, static_cast<uint64_t>(value)});
  }
  void hex(std::string_view name, uint64_t value) {
    field(name, {ShownValue::Kind::kHex, {}, value});
  }
  // `digits`: shortest decimal form that reads back the same, or inf, nan.
  void real(std::string_view name, std::string_view digits) {
    field(name, {ShownValue::Kind::kReal, digits});
  }
  void boolean(std::string_view name, bool value) {
    field(name, {ShownValue::Kind::kBoolean, {}, value ? uint64_t{1} : 0});
  }

  // The subject of the record: its function, its event's name, its text.
  virtual void title(std::string_view name, std::string_view value) = 0;
  virtual void field(std::string_view name, const ShownValue& value) = 0;
  // Fields up to end() belong to a list, where their names do not count, or to an object.
  // Lists do not nest.
  virtual void begin_list(std::string_view name) = 0;
  virtual void begin_object(std::string_view name) = 0;
  virtual void end() = 0;
  // The bodies of ARGUMENTS and RESULT: in text "(1, 2)" and " = -1 ENOENT" after the
  // title; in JSON the array args, and retval and errno. With `names`, which is "a,b" for
  // two arguments: "(a=1, b=2)", and a second array, arg_names.
  virtual void args(std::span<const std::byte> body, std::string_view names) = 0;
  virtual void retval(std::span<const std::byte> body, std::string_view names) = 0;
};

// "title name=value name=[value, value]", escaped for a terminal. The members of an
// object become fields of the line.
class TextFields : public FieldSink {
 public:
  // Appends to `out`, which must outlive this object.
  explicit TextFields(std::string& out) : out_(out) {}

  void title(std::string_view name, std::string_view value) override;
  void field(std::string_view name, const ShownValue& value) override;
  void begin_list(std::string_view name) override;
  void begin_object(std::string_view name) override;
  void end() override;
  void args(std::span<const std::byte> body, std::string_view names) override;
  void retval(std::span<const std::byte> body, std::string_view names) override;

 private:
  void separate();
  void key(std::string_view name);

  std::string& out_;
  bool first_ = true;  // of the line, or of the list that is open
  bool in_list_ = false;
};

// Members of the object that is open in a JsonWriter.
class JsonFields : public FieldSink {
 public:
  // `json` must outlive this object.
  explicit JsonFields(JsonWriter& json) : json_(json) {}

  void title(std::string_view name, std::string_view value) override;
  void field(std::string_view name, const ShownValue& value) override;
  void begin_list(std::string_view name) override;
  void begin_object(std::string_view name) override;
  void end() override;
  void args(std::span<const std::byte> body, std::string_view names) override;
  void retval(std::span<const std::byte> body, std::string_view names) override;

 private:
  JsonWriter& item(std::string_view name);

  JsonWriter& json_;
};

// Gives the fields of a record to a sink.
using DescribeRecord = std::function<void(const Record& record, FieldSink& out)>;

// The fields of `record` as text.
std::string content_text(const DescribeRecord& describe, const Record& record);

// The fields of `record` as JsonWriter::members() takes them.
std::string content_members(const DescribeRecord& describe, const Record& record);

}  // namespace arctrace::reader
