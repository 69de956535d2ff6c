// What `record --snapshot-when` asks of a call that ends, and the code by which the
// options protocol names it:
//
//   kind     t: the call's time in ns; r: its return value
//   compare  '0' + Compare
//   type     of a return value: its size in bytes, 1, 2, 4 or 8; of a time 8
//   signed   s or u
//   value    16 hexadecimal digits
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/hook_abi/shim_types.h"

namespace arctrace::shim {

struct CallCondition {
  enum class Compare : uint8_t {
    kLess,
    kLessOrEqual,
    kMore,
    kMoreOrEqual,
    kEqual,
    kOther
  };

  bool is_result = false;  // else it is about the call's time
  Compare compare = Compare::kMore;
  uint8_t size = 8;
  bool is_signed = false;
  uint64_t value = 0;
};

inline constexpr size_t kCallConditionSize = 20;
struct CallConditionCode {
  char text[kCallConditionSize + 1];
};

constexpr CallConditionCode encode_call_condition(const CallCondition& condition) {
  CallConditionCode code{};
  code.text[0] = condition.is_result ? 'r' : 't';
  code.text[1] = static_cast<char>('0' + static_cast<int>(condition.compare));
  code.text[2] = static_cast<char>('0' + condition.size);
  code.text[3] = condition.is_signed ? 's' : 'u';
  for (size_t i = 0; i < 16; ++i) {
    code.text[4 + i] = "0123456789abcdef"[condition.value >> (60 - 4 * i) & 15];
  }
  return code;
}

// False: `text` is none.
constexpr bool decode_call_condition(const char* text,
                                     arctrace_shim_call_condition& condition) {
  condition = {};
  for (size_t i = 0; i < kCallConditionSize; ++i) {
    const char c = text[i];
    if (c == '\0') return false;
    if (i < 4) continue;
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit && (c < 'a' || c > 'f')) return false;
    condition.value =
        condition.value << 4 | static_cast<uint64_t>(is_digit ? c - '0' : c - 'a' + 10);
  }
  condition.is_result = text[0] == 'r';
  condition.compare = static_cast<uint8_t>(text[1] - '0');
  condition.size = static_cast<uint8_t>(text[2] - '0');
  condition.is_signed = text[3] == 's';
  return (text[0] == 'r' || text[0] == 't') && text[1] >= '0' && text[1] <= '5' &&
         (condition.size == 1 || condition.size == 2 || condition.size == 4 ||
          condition.size == 8) &&
         text[kCallConditionSize] == '\0';
}

}  // namespace arctrace::shim
