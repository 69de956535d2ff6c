// JSON, written piece by piece: reports are larger than memory should be.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reader/render/write_text.hpp"

namespace arctrace::reader {

// One value, of whatever depth. Each member of an object is key() and then a value.
class JsonWriter {
 public:
  explicit JsonWriter(WriteText write) : write_(std::move(write)) {}
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;

  void begin_object() { begin('{', '}'); }
  void begin_array() { begin('[', ']'); }
  void end();  // of the innermost object or array

  JsonWriter& key(std::string_view name);

  void text(std::string_view value);  // raw bytes of the trace
  void number(uint64_t value);
  void number(int64_t value);
  void boolean(bool value);

  // Members of an object that someone else wrote: ",\"a\":1" or empty.
  void members(std::string_view raw) { buffer_ += raw; }

  void member(std::string_view name, std::string_view value) { key(name).text(value); }
  void member(std::string_view name, const char* value) { key(name).text(value); }
  void member(std::string_view name, uint64_t value) { key(name).number(value); }
  void member(std::string_view name, uint32_t value) {
    key(name).number(uint64_t{value});
  }
  void member(std::string_view name, int64_t value) { key(name).number(value); }
  void member(std::string_view name, bool value) { key(name).boolean(value); }

  // False once no more is wanted.
  bool good() const { return good_; }
  // Hands over what is buffered. REQUIRES: everything is ended.
  void finish();

 private:
  void begin(char open, char close);
  void before_value();
  void flush();

  WriteText write_;
  std::string buffer_;
  std::string closers_;  // of what is open, innermost last
  bool comma_ = false;   // before the next value or key
  bool good_ = true;
};

}  // namespace arctrace::reader
