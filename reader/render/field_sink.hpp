// Named values on their way into a line of text or of JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace arctrace::cli {

// Takes the fields of one record, one after another. Text is raw bytes of the trace.
class FieldSink {
 public:
  virtual ~FieldSink() = default;

  // What the record is about: its function, its event's name, its text.
  virtual void title(std::string_view name, std::string_view value) = 0;
  virtual void text(std::string_view name, std::string_view value) = 0;
  virtual void number(std::string_view name, uint64_t value) = 0;
  virtual void signed_number(std::string_view name, int64_t value) = 0;
  virtual void hex(std::string_view name, uint64_t value) = 0;
  // `digits`: shortest decimal form that reads back the same, or inf, nan.
  virtual void real(std::string_view name, std::string_view digits) = 0;
  virtual void boolean(std::string_view name, bool value) = 0;
  // What comes up to end() is part of a list (names do not count) or of an object.
  virtual void begin_list(std::string_view name) = 0;
  virtual void begin_object(std::string_view name) = 0;
  virtual void end() = 0;
  // The bodies of ARGUMENTS and RESULT: "(1, 2)" and " = -1 ENOENT" behind the title, or
  // args, an array, and retval and errno. With `names` "a,b" it is "(a=1, b=2)", and
  // arg_names, another array.
  virtual void arguments(std::span<const std::byte> body, std::string_view names) = 0;
  virtual void result(std::span<const std::byte> body, std::string_view names) = 0;
};

// What text and JSON have in common. Appends to `out`, which must outlive it.
class LineFields : public FieldSink {
 public:
  explicit LineFields(std::string& out) : out_(out) {}

  void number(std::string_view name, uint64_t value) override;
  void signed_number(std::string_view name, int64_t value) override;
  void boolean(std::string_view name, bool value) override;
  void begin_list(std::string_view name) override;

 protected:
  // What stands before a value.
  virtual void key(std::string_view name) = 0;

  std::string& out_;
  bool first_ = false;  // of the line, list or object that is open
  bool in_list_ = false;
};

// "title name=value name=[value, value]", escaped for a terminal.
class TextFields : public LineFields {
 public:
  explicit TextFields(std::string& out) : LineFields(out) { first_ = true; }

  void title(std::string_view name, std::string_view value) override;
  void text(std::string_view name, std::string_view value) override;
  void hex(std::string_view name, uint64_t value) override;
  void real(std::string_view name, std::string_view digits) override;
  void begin_object(std::string_view name) override;
  void end() override;
  void arguments(std::span<const std::byte> body, std::string_view names) override;
  void result(std::span<const std::byte> body, std::string_view names) override;

 private:
  void key(std::string_view name) override;
  void separate();
};

// Members of a JSON object that has been opened and has members already.
class JsonFields : public LineFields {
 public:
  using LineFields::LineFields;

  void title(std::string_view name, std::string_view value) override;
  void text(std::string_view name, std::string_view value) override;
  void hex(std::string_view name, uint64_t value) override;
  void real(std::string_view name, std::string_view digits) override;
  void begin_object(std::string_view name) override;
  void end() override;
  void arguments(std::span<const std::byte> body, std::string_view names) override;
  void result(std::span<const std::byte> body, std::string_view names) override;

 private:
  void key(std::string_view name) override;
};

}  // namespace arctrace::cli
