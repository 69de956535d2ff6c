// Parses conditions on fields, and compares values with their operands.
#include "src/protocol/field_condition.hpp"

#include <arctrace/format.h>

#include "src/base/glob.hpp"

namespace arctrace {
namespace {

constexpr uint64_t kSignBit = uint64_t{1} << 63;

// ---- Taking a condition apart ---------------------------------------------------

bool is_operator_sign(char sign) {
  return sign == '=' || sign == '!' || sign == '<' || sign == '>' || sign == '~';
}

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// The operator at the front of `text`, and how many signs it has.
FieldOperator operator_at(std::string_view text, size_t& size) {
  if (text.empty()) return FieldOperator::kNone;
  const bool is_with_equal = text.size() > 1 && text[1] == '=';
  size = text[0] != '~' && is_with_equal ? 2 : 1;
  switch (text[0]) {
    case '=':
      return FieldOperator::kEqual;
    case '!':
      return is_with_equal ? FieldOperator::kNotEqual : FieldOperator::kNone;
    case '<':
      return is_with_equal ? FieldOperator::kLessOrEqual : FieldOperator::kLess;
    case '>':
      return is_with_equal ? FieldOperator::kGreaterOrEqual : FieldOperator::kGreater;
    case '~':
      return FieldOperator::kMatches;
    default:
      return FieldOperator::kNone;
  }
}

// False: it has more than 64 bits, or another character.
bool read_digits(std::string_view text, uint32_t base, uint64_t& number) {
  if (text.empty()) return false;
  number = 0;
  for (const char character : text) {
    const char lower = static_cast<char>(character | 0x20);
    uint32_t digit = base;
    if (character >= '0' && character <= '9') {
      digit = static_cast<uint32_t>(character - '0');
    } else if (lower >= 'a' && lower <= 'f') {
      digit = static_cast<uint32_t>(lower - 'a') + 10;
    }
    if (digit >= base || number > (UINT64_MAX - digit) / base) return false;
    number = number * base + digit;
  }
  return true;
}

// The truth value that the operand names; -1: it is none.
int truth_of(const FieldCondition& condition) {
  const std::string_view text = condition.operand;
  if (condition.is_quoted) return -1;
  if (is_same_text(text, "true") || is_same_text(text, "1")) return 1;
  if (is_same_text(text, "false") || is_same_text(text, "0")) return 0;
  return -1;
}

// ---- Comparing -----------------------------------------------------------------

enum class Order : uint8_t { kLess, kEqual, kGreater, kNone };

template <class Value>
Order order_of(const Value& a, const Value& b) {
  if (a < b) return Order::kLess;
  return b < a ? Order::kGreater : Order::kEqual;
}

Order reversed(Order order) {
  if (order == Order::kLess) return Order::kGreater;
  return order == Order::kGreater ? Order::kLess : order;
}

bool holds(FieldOperator op, Order order) {
  const bool is_equal = order == Order::kEqual;
  switch (op) {
    case FieldOperator::kEqual:
      return is_equal;
    case FieldOperator::kNotEqual:
      return !is_equal;
    case FieldOperator::kLess:
      return order == Order::kLess;
    case FieldOperator::kLessOrEqual:
      return is_equal || order == Order::kLess;
    case FieldOperator::kGreater:
      return order == Order::kGreater;
    case FieldOperator::kGreaterOrEqual:
      return is_equal || order == Order::kGreater;
    default:
      return false;
  }
}

// An integer of 64 bits and a sign.
struct Integer {
  bool is_negative = false;
  uint64_t magnitude = 0;
};

Order order_of_integers(const Integer& a, const Integer& b) {
  const bool a_below = a.is_negative && a.magnitude != 0;
  const bool b_below = b.is_negative && b.magnitude != 0;
  if (a_below != b_below) return a_below ? Order::kLess : Order::kGreater;
  const Order order = order_of(a.magnitude, b.magnitude);
  return a_below ? reversed(order) : order;
}

constexpr uint64_t exponent_of(uint64_t bits) { return bits >> 52 & 0x7FF; }
constexpr uint64_t fraction_of(uint64_t bits) { return bits & ((uint64_t{1} << 52) - 1); }
constexpr bool is_nan(uint64_t bits) {
  return exponent_of(bits) == 0x7FF && fraction_of(bits) != 0;
}

// The f64 bits of the same number, exactly.
uint64_t widened(uint32_t bits) {
  const uint64_t sign = uint64_t{bits >> 31} << 63;
  uint64_t exponent = bits >> 23 & 0xFF;
  uint64_t fraction = bits & 0x7FFFFF;
  if (exponent == 0xFF) return sign | uint64_t{0x7FF} << 52 | fraction << 29;
  if (exponent == 0) {
    if (fraction == 0) return sign;
    exponent = 1;
    while ((fraction & 0x800000) == 0) {
      fraction <<= 1;
      --exponent;
    }
    fraction &= 0x7FFFFF;
  }
  return sign | (exponent + 1023 - 127) << 52 | fraction << 29;
}

Order order_of_reals(uint64_t a, uint64_t b) {
  if (is_nan(a) || is_nan(b)) {
    return is_nan(a) && is_nan(b) ? Order::kEqual : Order::kNone;
  }
  // In this order: -inf, ..., -0 and 0, ..., inf.
  const auto key = [](uint64_t bits) {
    if (bits == kSignBit) bits = 0;
    return (bits & kSignBit) != 0 ? ~bits : bits | kSignBit;
  };
  return order_of(key(a), key(b));
}

Order order_of_integer_and_real(const Integer& a, uint64_t b) {
  if (is_nan(b)) return Order::kNone;
  const bool is_negative = (b & kSignBit) != 0;
  const uint64_t exponent = exponent_of(b);
  if (exponent >= 1023 + 64) return is_negative ? Order::kGreater : Order::kLess;
  // The part before the point, and whether other digits follow the point.
  Integer whole{is_negative, 0};
  bool has_more = (b & ~kSignBit) != 0;
  if (exponent >= 1023) {
    const uint64_t shift = exponent - 1023;
    const uint64_t digits = fraction_of(b) | uint64_t{1} << 52;
    whole.magnitude = shift >= 52 ? digits << (shift - 52) : digits >> (52 - shift);
    has_more = shift < 52 && (digits & ((uint64_t{1} << (52 - shift)) - 1)) != 0;
  }
  const Order order = order_of_integers(a, whole);
  if (order != Order::kEqual || !has_more) return order;
  return is_negative ? Order::kGreater : Order::kLess;
}

uint64_t load_number(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | uint64_t(bytes[i]);
  return value;
}

bool is_signed(uint32_t type) {
  return type >= ARCTRACE_FIELD_I8 && type <= ARCTRACE_FIELD_I64;
}

Integer integer_in(uint32_t type, std::span<const std::byte> bytes) {
  uint64_t value = load_number(bytes);
  if (!is_signed(type)) return {false, value};
  const uint32_t unused = 64 - 8 * static_cast<uint32_t>(bytes.size());
  const auto extended = static_cast<int64_t>(value << unused) >> unused;
  value = static_cast<uint64_t>(extended);
  return extended < 0 ? Integer{true, ~value + 1} : Integer{false, value};
}

constexpr bool is_infinite_f32(uint32_t bits) {
  return (bits & 0x7FFFFFFF) == 0x7F800000;
}
constexpr bool is_infinite_f64(uint64_t bits) {
  return (bits & ~kSignBit) == uint64_t{0x7FF} << 52;
}

Order order_of_number(uint32_t type, std::span<const std::byte> bytes,
                      const OperandNumber& number) {
  const Integer integer{number.is_negative, number.magnitude};
  const bool is_integer = number.kind == OperandNumber::Kind::kInteger;
  if (type != ARCTRACE_FIELD_F32 && type != ARCTRACE_FIELD_F64) {
    const Integer value = integer_in(type, bytes);
    return is_integer ? order_of_integers(value, integer)
                      : order_of_integer_and_real(value, number.real.f64);
  }
  const uint64_t bits = load_number(bytes);
  const bool is_f32 = type == ARCTRACE_FIELD_F32;
  const uint64_t value = is_f32 ? widened(static_cast<uint32_t>(bits)) : bits;
  if (is_integer) return reversed(order_of_integer_and_real(integer, value));
  // The number is beyond the range of f32, so rounding would make it an infinity.
  const bool is_too_large =
      is_infinite_f32(number.real.f32) && !is_infinite_f64(number.real.f64);
  return order_of_reals(
      value, is_f32 && !is_too_large ? widened(number.real.f32) : number.real.f64);
}

Order order_of_texts(std::string_view a, std::string_view b) {
  const size_t common = a.size() < b.size() ? a.size() : b.size();
  for (size_t i = 0; i < common; ++i) {
    const Order order =
        order_of(static_cast<unsigned char>(a[i]), static_cast<unsigned char>(b[i]));
    if (order != Order::kEqual) return order;
  }
  return order_of(a.size(), b.size());
}

bool is_equality(FieldOperator op) {
  return op == FieldOperator::kEqual || op == FieldOperator::kNotEqual;
}

}  // namespace

FieldCondition split_condition(std::string_view text) {
  size_t at = 0;
  while (at < text.size() && !is_operator_sign(text[at])) ++at;
  FieldCondition condition;
  condition.field = without_blanks({text.data(), at});
  size_t size = 0;
  condition.op = operator_at({text.data() + at, text.size() - at}, size);
  if (condition.op == FieldOperator::kNone) return condition;
  std::string_view operand =
      without_blanks({text.data() + at + size, text.size() - at - size});
  condition.is_quoted =
      operand.size() >= 2 && operand.front() == '"' && operand.back() == '"';
  if (condition.is_quoted) {
    operand.remove_prefix(1);
    operand.remove_suffix(1);
  }
  condition.operand = operand;
  return condition;
}

OperandNumber number_of(const FieldCondition& condition, RealBits real) {
  OperandNumber number;
  if (condition.is_quoted) return number;
  std::string_view digits = condition.operand;
  number.is_negative = !digits.empty() && digits.front() == '-';
  if (number.is_negative) digits.remove_prefix(1);
  const bool is_hex =
      digits.size() > 2 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
  if (is_hex) digits.remove_prefix(2);
  if (read_digits(digits, is_hex ? 16 : 10, number.magnitude)) {
    number.kind = OperandNumber::Kind::kInteger;
  } else if (real.is_known) {
    number.kind = OperandNumber::Kind::kReal;
    number.real = real;
  }
  return number;
}

bool can_be_compared(uint32_t type, const FieldCondition& condition,
                     const OperandNumber& number) {
  switch (type) {
    case ARCTRACE_FIELD_STRING:
      return true;
    case ARCTRACE_FIELD_BOOL:
      return truth_of(condition) >= 0 && is_equality(condition.op);
    default:
      return number.kind != OperandNumber::Kind::kNone &&
             condition.op != FieldOperator::kMatches;
  }
}

bool meets_condition(uint32_t type, std::span<const std::byte> bytes,
                     const FieldCondition& condition, const OperandNumber& number) {
  if (!can_be_compared(type, condition, number)) return false;
  if (type == ARCTRACE_FIELD_STRING) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                                bytes.size());
    if (condition.op == FieldOperator::kMatches) {
      return glob_matches(condition.operand, text);
    }
    return holds(condition.op, order_of_texts(text, condition.operand));
  }
  if (type == ARCTRACE_FIELD_BOOL) {
    const bool is_same = (load_number(bytes) != 0) == (truth_of(condition) == 1);
    return is_same == (condition.op == FieldOperator::kEqual);
  }
  return holds(condition.op, order_of_number(type, bytes, number));
}

uint32_t field_width(uint32_t type) {
  switch (type) {
    case ARCTRACE_FIELD_U8:
    case ARCTRACE_FIELD_I8:
    case ARCTRACE_FIELD_BOOL:
      return 1;
    case ARCTRACE_FIELD_U16:
    case ARCTRACE_FIELD_I16:
      return 2;
    case ARCTRACE_FIELD_U32:
    case ARCTRACE_FIELD_I32:
    case ARCTRACE_FIELD_F32:
    case ARCTRACE_FIELD_STRING:
      return 4;
    default:
      return 8;
  }
}

bool take_field(uint32_t type, std::span<const std::byte>& payload,
                std::span<const std::byte>& value) {
  const auto take = [&](uint64_t size) {
    if (size > payload.size()) return false;
    value = payload.first(static_cast<size_t>(size));
    payload = payload.subspan(static_cast<size_t>(size));
    return true;
  };
  if (!take(field_width(type))) return false;
  return type != ARCTRACE_FIELD_STRING || take(load_number(value));
}

}  // namespace arctrace
