// The fields of one record on their way into a line of text or an object of JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "reader/render/json_writer.hpp"

namespace arctrace::reader {

// Takes the fields of one record, one after another. Text is raw bytes of the trace.
class FieldSink {
 public:
  virtual ~FieldSink() = default;

  // The subject of the record: its function, its event's name, its text.
  virtual void title(std::string_view name, std::string_view value) = 0;
  virtual void text(std::string_view name, std::string_view value) = 0;
  virtual void number(std::string_view name, uint64_t value) = 0;
  virtual void signed_number(std::string_view name, int64_t value) = 0;
  virtual void hex(std::string_view name, uint64_t value) = 0;
  // `digits`: shortest decimal form that reads back the same, or inf, nan.
  virtual void real(std::string_view name, std::string_view digits) = 0;
  virtual void boolean(std::string_view name, bool value) = 0;
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
  void text(std::string_view name, std::string_view value) override;
  void number(std::string_view name, uint64_t value) override;
  void signed_number(std::string_view name, int64_t value) override;
  void hex(std::string_view name, uint64_t value) override;
  void real(std::string_view name, std::string_view digits) override;
  void boolean(std::string_view name, bool value) override;
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
  void text(std::string_view name, std::string_view value) override;
  void number(std::string_view name, uint64_t value) override;
  void signed_number(std::string_view name, int64_t value) override;
  void hex(std::string_view name, uint64_t value) override;
  void real(std::string_view name, std::string_view digits) override;
  void boolean(std::string_view name, bool value) override;
  void begin_list(std::string_view name) override;
  void begin_object(std::string_view name) override;
  void end() override;
  void args(std::span<const std::byte> body, std::string_view names) override;
  void retval(std::span<const std::byte> body, std::string_view names) override;

 private:
  JsonWriter& item(std::string_view name);

  JsonWriter& json_;
};

}  // namespace arctrace::reader
