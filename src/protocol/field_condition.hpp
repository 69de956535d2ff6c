// Conditions on the fields of events (SPEC.md FLT-2): "id >= 10". The writer checks what
// a program is about to write, and readers what was written, by the same code, so that a
// condition means the same in both. The code uses integers and no libc, because the
// writer uses general registers only.
//
// Numbers are compared as they are, without rounding: integers of 64 bits with decimal
// fractions, too. Only a fraction that is compared with an f32 is first rounded to one,
// so that 0.1 equals what is shown as 0.1. NaN equals NaN, and is neither less nor
// greater than anything. Texts are compared byte by byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace arctrace {

enum class FieldOperator : uint8_t {
  kNone,
  kEqual,
  kNotEqual,
  kLess,
  kLessOrEqual,
  kGreater,
  kGreaterOrEqual,
  kMatches,  // a glob (src/base/glob.hpp), of texts only
};

// "FIELD OP VALUE", taken apart: views into the text.
struct FieldCondition {
  std::string_view field;
  FieldOperator op = FieldOperator::kNone;
  std::string_view operand;  // without the quotes around it
  bool is_quoted = false;    // it had quotes: it is a text, and no number or truth value
};

// Takes `text` apart at the first of the signs = ! < > ~. Missing parts are empty, and
// `op` is kNone if none of the operators stands there.
FieldCondition split_condition(std::string_view text);

// The IEEE bits of an operand that is a number, but no integer of 64 bits.
struct RealBits {
  uint64_t f64 = 0;
  uint32_t f32 = 0;
  bool is_known = false;
};

// The value of an operand that is a number.
struct OperandNumber {
  enum class Kind : uint8_t { kNone, kInteger, kReal };
  Kind kind = Kind::kNone;
  bool is_negative = false;  // of an integer
  uint64_t magnitude = 0;    // of an integer
  RealBits real;
};

// The number of decimal digits, or hexadecimal ones after 0x, with or without "-", of 64
// bits at most; else the number that `real` has.
OperandNumber number_of(const FieldCondition& condition, RealBits real);

// Whether a field of this type (enum arctrace_field_type) can be compared with the
// operand.
bool can_be_compared(uint32_t type, const FieldCondition& condition,
                     const OperandNumber& number);

// Whether the value of a field of this type meets the condition. `bytes`: as wide as the
// type, or the text of a STRING.
bool meets_condition(uint32_t type, std::span<const std::byte> bytes,
                     const FieldCondition& condition, const OperandNumber& number);

// Compares byte by byte, because the writer does not call libc's memcmp().
inline bool is_same_text(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i]) return false;
  }
  return true;
}

// The size in bytes of a value of this type; of a STRING the size of the field that has
// its length.
uint32_t field_width(uint32_t type);

// Removes a value of this type from the front of `payload` and returns it, a text without
// its size. False: the payload ends before it does.
bool take_field(uint32_t type, std::span<const std::byte>& payload,
                std::span<const std::byte>& value);

}  // namespace arctrace
