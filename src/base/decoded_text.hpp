// Memory of a caller that a decoder of names writes its text into, and the position up to
// which a decoder has read a name. No libc is used, because the shim decodes names too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace arctrace {

constexpr bool is_digit(char c) { return '0' <= c && c <= '9'; }
constexpr bool is_lower(char c) { return 'a' <= c && c <= 'z'; }
constexpr bool is_upper(char c) { return 'A' <= c && c <= 'Z'; }

// The value of a lower-case hexadecimal digit; -1: it is none.
constexpr int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  return 'a' <= c && c <= 'f' ? c - 'a' + 10 : -1;
}

// Whether `text` has `part` at `offset`.
constexpr bool has_at(std::string_view text, size_t offset, std::string_view part) {
  if (offset > text.size() || text.size() - offset < part.size()) return false;
  for (size_t i = 0; i < part.size(); ++i) {
    if (text[offset + i] != part[i]) return false;
  }
  return true;
}

// The part of `text` from `begin` on. REQUIRES: begin <= text.size().
constexpr std::string_view text_from(std::string_view text, size_t begin) {
  return {text.data() + begin, text.size() - begin};
}

class DecodedText {
 public:
  DecodedText(char* bytes, size_t capacity) : bytes_(bytes), capacity_(capacity) {}

  void put(char c) {
    if (size_ == capacity_) {
      is_too_long_ = true;
    } else {
      bytes_[size_++] = c;
    }
  }
  void put(std::string_view text) {
    for (const char c : text) put(c);
  }
  // A literal's size is a constant: the shim must not call strlen.
  template <size_t kSize>
  void put(const char (&text)[kSize]) {
    put(std::string_view(text, kSize - 1));
  }
  void put_number(uint64_t number) {
    char digits[20];
    size_t begin = sizeof digits;
    do {
      digits[--begin] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    put({digits + begin, sizeof digits - begin});
  }
  // Puts a character of Unicode as UTF-8.
  void put_utf8(uint32_t c) {
    const auto rest = [&](unsigned shift) {
      put(static_cast<char>(0x80 | (c >> shift & 0x3F)));
    };
    if (c < 0x80) {
      put(static_cast<char>(c));
    } else if (c < 0x800) {
      put(static_cast<char>(0xC0 | c >> 6));
      rest(0);
    } else if (c < 0x10000) {
      put(static_cast<char>(0xE0 | c >> 12));
      rest(6);
      rest(0);
    } else {
      put(static_cast<char>(0xF0 | c >> 18));
      rest(12);
      rest(6);
      rest(0);
    }
  }

  size_t size() const { return size_; }
  // Whether something did not fit, so that the text is of no use.
  bool is_too_long() const { return is_too_long_; }

 private:
  char* bytes_;
  size_t capacity_;
  size_t size_ = 0;
  bool is_too_long_ = false;
};

}  // namespace arctrace
