// Arguments and results of calls, and how they are written.
#pragma once

#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace arctrace::reader {

// Whether a value of this kind is a number of 1, 2, 4 or 8 bytes. An unknown one is not.
inline bool is_number_kind(uint32_t kind) {
  return kind >= ARCTRACE_VALUE_SIGNED && kind <= ARCTRACE_VALUE_NAMES &&
         kind != ARCTRACE_VALUE_STRING && kind != ARCTRACE_VALUE_STRING_CUT;
}

struct CallValue {
  uint32_t kind = 0;          // enum arctrace_value_kind, or an unknown one
  uint32_t argument = 0;      // from 1; 0: the result
  uint64_t number = 0;        // of a number, as far as its bytes go
  int64_t signed_number = 0;  // the same with its sign
  uint32_t size = 0;          // of a number
  std::string_view bytes;     // of all others; raw bytes of the trace
  std::string_view name;      // of an argument; empty: not known
  std::string_view words;     // "5=red/-1=none": of an enumeration, else empty
};

// Of an ARGUMENTS or RESULT record whose body has no problem (record_types.hpp), but for
// the names, which are those of the values in turn, "a,b/5=red", unless there is not one
// for each. Views point into `body` and `names`.
std::vector<CallValue> decode_values(std::span<const std::byte> body,
                                     std::string_view names);

// The name id of the values' names; nothing if they have none.
std::optional<uint32_t> names_of_values(std::span<const std::byte> body);

// Shortest decimal form that reads back the same, or inf, nan.
std::string float_digits(const CallValue& value);

// The word for a number that has names, or flags joined by |; empty if it has none.
std::string value_word(const CallValue& value);

// "ENOENT"; a number without a name as digits.
std::string errno_word(int64_t number);

// As strace writes it: "/etc/pas"..., 0x7ffe, NULL, O_RDONLY|O_CLOEXEC, 0644, 'a', -1.
// Escaped for a terminal.
std::string value_text(const CallValue& value);

// "(value, value)" of ARGUMENTS, or "(a=value, b=value)" with `names` "a,b".
std::string arguments_text(std::span<const std::byte> body, std::string_view names);
// " = value", " = -1 ENOENT" of RESULT.
std::string result_text(std::span<const std::byte> body, std::string_view names);

}  // namespace arctrace::reader
