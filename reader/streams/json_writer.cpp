#include "reader/streams/json_writer.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

constexpr size_t kBufferSize = 1 << 16;
constexpr size_t kBufferSizeMin = 1 << 8;
constexpr std::string_view kIndentation = "  ";

// Whether `text` stands for itself in a JSON string. Nearly all names do.
bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
  });
}

}  // namespace

// ---- The buffer ----

// Returns space for `size` bytes at the end of the buffer. It is inlined, because it is
// most of the time of a dump.
inline char* JsonWriter::extend(size_t size) {
  if (buffer_.size() - used_ < size) grow(size);
  char* const end = buffer_.data() + used_;
  used_ += size;
  return end;
}

void JsonWriter::grow(size_t size) {
  if (used_ + size > kBufferSize) flush();
  const size_t wanted = std::min(kBufferSize, 2 * buffer_.size() + kBufferSizeMin);
  if (used_ + size > buffer_.size()) buffer_.resize(std::max(used_ + size, wanted));
}

inline void JsonWriter::append(char c) { *extend(1) = c; }

inline void JsonWriter::append(std::string_view text) {
  text.copy(extend(text.size()), text.size());
}

template <class Number>
void JsonWriter::append_number(Number number) {
  constexpr size_t kDigitsMax = 20;  // of 64 bits, with a sign
  char* const begin = extend(kDigitsMax);
  const char* const end = std::to_chars(begin, begin + kDigitsMax, number).ptr;
  used_ -= kDigitsMax - static_cast<size_t>(end - begin);
}

void JsonWriter::append_string(std::string_view text) {
  if (!is_plain(text)) {
    using Invalid = nlohmann::json::error_handler_t;
    return append(json_without_controls(
        nlohmann::json(text).dump(-1, ' ', false, Invalid::replace)));
  }
  char* const begin = extend(text.size() + 2);
  begin[0] = '"';
  text.copy(begin + 1, text.size());
  begin[text.size() + 1] = '"';
}

void JsonWriter::flush() {
  if (good_ && used_ > 0) good_ = write_(std::string_view(buffer_.data(), used_));
  used_ = 0;
}

// ---- The syntax ----

void JsonWriter::begin(char open, char close) {
  before_item();
  append(open);
  closers_ += close;
  has_items_ = false;
}

void JsonWriter::end() {
  const char closer = closers_.back();
  closers_.pop_back();
  if (has_items_) begin_line();
  append(closer);
  has_items_ = true;
  if (closers_.empty()) append('\n');
}

JsonWriter& JsonWriter::key(std::string_view name) {
  before_item();
  append_string(name);
  append(':');
  if (layout_ == Layout::kIndented) append(' ');
  after_key_ = true;
  return *this;
}

void JsonWriter::value(std::string_view text) {
  before_item();
  append_string(text);
}

void JsonWriter::value(bool truth) {
  before_item();
  append(truth ? std::string_view("true") : std::string_view("false"));
}

void JsonWriter::value(std::nullptr_t) {
  before_item();
  append("null");
}

void JsonWriter::value(double real) {
  if (!std::isfinite(real)) return value(nullptr);
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), real);
  const std::string_view digits(text.data(), static_cast<size_t>(end.ptr - text.data()));
  before_item();
  append(digits);
  // A reader takes a number without a point or an exponent for an integer.
  if (digits.find_first_of(".e") == std::string_view::npos) append(".0");
}

void JsonWriter::signed_number(int64_t number) {
  before_item();
  append_number(number);
}

void JsonWriter::unsigned_number(uint64_t number) {
  before_item();
  append_number(number);
}

void JsonWriter::digits(std::string_view digits) {
  if (std::isdigit(static_cast<unsigned char>(digits.back())) == 0) return value(digits);
  before_item();
  append(digits);
}

void JsonWriter::members(std::string_view members) {
  if (members.empty()) return;
  before_item();
  append(members);
}

// Writes the separator before a key, an element, or the value after a key.
void JsonWriter::before_item() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (closers_.empty()) return;
  if (has_items_) append(',');
  has_items_ = true;
  begin_line();
}

void JsonWriter::begin_line() {
  if (layout_ != Layout::kIndented) return;
  append('\n');
  for (size_t i = 0; i < closers_.size(); ++i) append(kIndentation);
}

std::string json_members(absl::FunctionRef<void(JsonWriter&)> write) {
  std::string object;
  JsonWriter json([&object](std::string_view text) {
    object += text;
    return true;
  });
  json.begin_object();
  write(json);
  json.end();
  json.finish();
  return object.substr(1, object.size() - 3);  // without the braces and the newline
}

}  // namespace arctrace::reader
