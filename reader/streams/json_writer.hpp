// The one writer of JSON, and the receiver of text that is written piece by piece,
// because a report can be larger than memory allows.
#pragma once

#include <absl/functional/function_ref.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace arctrace::reader {

// The receiver of text output: takes the next piece, and returns false once it wants no
// more.
using WriteText = std::function<bool(std::string_view)>;

// The one writer of JSON. Writes a sequence of objects and arrays, each followed by a
// newline. A member of an object is a key() and then a value. Keeps about 64 KiB of text
// in memory, or the largest string.
class JsonWriter {
 public:
  enum class Layout : uint8_t {
    kCompact,   // no white space within a value: one line for each
    kIndented,  // a line for each member and element, indented by two blanks a level
  };

  explicit JsonWriter(WriteText write, Layout layout = Layout::kCompact)
      : write_(std::move(write)), layout_(layout) {}
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;

  void begin_object() { begin('{', '}'); }
  void begin_array() { begin('[', ']'); }
  void end();  // of the innermost object or array

  JsonWriter& key(std::string_view name);

  void value(std::string_view text);  // raw bytes of the trace; invalid UTF-8 is replaced
  void value(const char* text) { value(std::string_view(text)); }
  void value(bool truth);
  void value(double real);  // shortest form that reads back the same; not finite: null
  void value(std::nullptr_t);
  template <std::integral Integer>
  void value(Integer number) {
    if constexpr (std::signed_integral<Integer>) {
      signed_number(number);
    } else {
      unsigned_number(number);
    }
  }
  // Writes null if there is no value.
  template <class Value>
  void value(const std::optional<Value>& maybe) {
    if (maybe.has_value()) {
      value(*maybe);
    } else {
      value(nullptr);
    }
  }
  // Writes a number in decimal digits. JSON has no infinity and no NaN: "inf" and "nan"
  // become strings.
  void digits(std::string_view digits);

  template <class Value>
  void member(std::string_view name, const Value& content) {
    key(name).value(content);
  }

  // Adds members, which json_members() wrote, to the object that is open. REQUIRES: the
  // layout is kCompact.
  void members(std::string_view members);

  // Whether the innermost open value is an array, whose elements have no keys.
  bool in_array() const { return !closers_.empty() && closers_.back() == ']'; }

  // False once the receiver wants no more.
  bool good() const { return good_; }
  // Hands over the buffered text. REQUIRES: everything has ended.
  void finish() { flush(); }

 private:
  void begin(char open, char close);
  void before_item();
  void begin_line();
  void signed_number(int64_t number);
  void unsigned_number(uint64_t number);

  char* extend(size_t size);
  void grow(size_t size);
  void append(char c);
  void append(std::string_view text);
  void append_string(std::string_view text);
  template <class Number>
  void append_number(Number number);
  void flush();

  WriteText write_;
  const Layout layout_;
  std::string buffer_;  // of which `used_` bytes are text
  size_t used_ = 0;
  std::string closers_;     // of what is open, innermost last
  bool has_items_ = false;  // in the innermost open value
  bool after_key_ = false;
  bool good_ = true;
};

// Returns the members that `write` adds to an object, as text that JsonWriter::members()
// takes: "\"a\":1,\"b\":[]".
std::string json_members(absl::FunctionRef<void(JsonWriter&)> write);

}  // namespace arctrace::reader
