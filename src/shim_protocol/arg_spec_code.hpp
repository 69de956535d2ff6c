// The code of four characters by which the options protocol and the table of auto-args
// name an argument or the return value of a call that is to be recorded.
//
//   number   of the argument: 1 to 9, a for 10, b for 11 ...; 0: the return value
//   kind     'a' + enum arctrace_value_kind; S: a std::string
//   size     in bytes: 1, 2, 4 or 8
//   failure  how a return value shows that the call failed: enum arctrace_shim_failure
//
// Specs of several arguments follow one another without a separator. The code of a
// condition on a call follows further down.
#pragma once

#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>

#include "src/hook_abi/shim_types.h"

namespace arctrace::shim {

inline constexpr size_t kArgSpecSize = 4;

struct ArgSpecCode {
  char text[kArgSpecSize];
};

constexpr bool is_valid_arg_spec(const arctrace_shim_arg_spec& spec) {
  const bool is_size =
      spec.size == 1 || spec.size == 2 || spec.size == 4 || spec.size == 8;
  const bool is_kind =
      (spec.kind >= ARCTRACE_VALUE_SIGNED && spec.kind <= ARCTRACE_VALUE_BOOL &&
       spec.kind != ARCTRACE_VALUE_STRING_CUT &&
       spec.kind != ARCTRACE_VALUE_STRING_LOST) ||
      spec.kind == ARCTRACE_SHIM_STD_STRING;
  const uint8_t registers = spec.kind == ARCTRACE_VALUE_FLOAT
                                ? ARCTRACE_SHIM_VECTORS_MAX
                                : ARCTRACE_SHIM_ARGUMENTS_MAX;
  return is_size && is_kind && spec.failure <= ARCTRACE_SHIM_FAILS_NULL &&
         spec.argument <= registers + ARCTRACE_SHIM_STACK_WORDS_MAX;
}

// REQUIRES: is_valid_arg_spec(spec).
constexpr ArgSpecCode encode_arg_spec(const arctrace_shim_arg_spec& spec) {
  const char number = static_cast<char>(spec.argument < 10 ? '0' + spec.argument
                                                           : 'a' + spec.argument - 10);
  const char kind =
      spec.kind == ARCTRACE_SHIM_STD_STRING ? 'S' : static_cast<char>('a' + spec.kind);
  return {{number, kind, static_cast<char>('0' + spec.size),
           static_cast<char>('0' + spec.failure)}};
}

// Decodes the spec at the beginning of the zero-terminated `text`. False: the spec is
// incomplete or not valid.
constexpr bool decode_arg_spec(const char* text, arctrace_shim_arg_spec& spec) {
  for (size_t i = 0; i < kArgSpecSize; ++i) {
    if (text[i] == '\0') return false;
  }
  const char number = text[0];
  spec.argument = static_cast<uint8_t>(number >= 'a' ? number - 'a' + 10 : number - '0');
  spec.kind =
      text[1] == 'S' ? ARCTRACE_SHIM_STD_STRING : static_cast<uint8_t>(text[1] - 'a');
  spec.size = static_cast<uint8_t>(text[2] - '0');
  spec.failure = static_cast<uint8_t>(text[3] - '0');
  return is_valid_arg_spec(spec);
}

// A condition of `record --snapshot-when` on a call that ends, and the code by which the
// options protocol names it:
//
//   kind     t: the call's time in ns; r: its return value
//   compare  '0' + Compare
//   type     of a return value: its size in bytes, 1, 2, 4 or 8; of a time 8
//   signed   s or u
//   value    16 hexadecimal digits
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

// False: `text` is no condition, and `condition` is one that no call fulfils.
constexpr bool decode_call_condition(const char* text,
                                     arctrace_shim_call_condition& condition) {
  condition = {};
  arctrace_shim_call_condition found{};
  for (size_t i = 0; i < kCallConditionSize; ++i) {
    const char c = text[i];
    if (c == '\0') return false;
    if (i < 4) continue;
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit && (c < 'a' || c > 'f')) return false;
    found.value =
        found.value << 4 | static_cast<uint64_t>(is_digit ? c - '0' : c - 'a' + 10);
  }
  found.is_result = text[0] == 'r';
  found.compare = static_cast<uint8_t>(text[1] - '0');
  found.size = static_cast<uint8_t>(text[2] - '0');
  found.is_signed = text[3] == 's';
  const bool is_condition =
      (text[0] == 'r' || text[0] == 't') && text[1] >= '0' && text[1] <= '5' &&
      (found.size == 1 || found.size == 2 || found.size == 4 || found.size == 8) &&
      text[kCallConditionSize] == '\0';
  if (is_condition) condition = found;
  return is_condition;
}

}  // namespace arctrace::shim
