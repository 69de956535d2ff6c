// The args and retval of calls: decoded from ARGUMENTS and RESULT records, and as text.
#pragma once

#include <arctrace/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace arctrace::reader {

// Whether an arg of this kind is a number of 1, 2, 4 or 8 bytes; false for an unknown
// kind.
inline bool is_number_kind(uint32_t kind) {
  return kind >= ARCTRACE_VALUE_SIGNED && kind <= ARCTRACE_VALUE_NAMES &&
         kind != ARCTRACE_VALUE_STRING && kind != ARCTRACE_VALUE_STRING_CUT;
}

// An argument, or a part of the result: the returned value, and errno if the call failed.
struct CallArg {
  uint32_t kind = 0;          // enum arctrace_value_kind, or an unknown one
  uint32_t index = 0;         // of the argument, from 1; 0: the result
  uint64_t number = 0;        // of a number kind, as far as its bytes go
  int64_t signed_number = 0;  // the same with its sign
  uint32_t size = 0;          // bytes of the number
  std::string_view bytes;     // of all other kinds; raw bytes of the trace
  std::string_view name;      // of the argument; empty: not known
  std::string_view words;     // "5=red/-1=none" for an enumeration, else empty
};

// Returns the args in the body of an ARGUMENTS or RESULT record, without their names.
// `names` are the names of the args in turn, "a,b/5=red"; they are ignored unless there
// is one for each. Views point into `body` and `names`. REQUIRES: the body has no problem
// (shared_block.hpp).
std::vector<CallArg> decode_args(std::span<const std::byte> body, std::string_view names);

// Returns the addresses of locks in the body of an ENTER record. The view points into
// `body`.
inline std::span<const std::byte> lock_words(std::span<const std::byte> body) {
  const size_t words = body.size() / sizeof(arctrace_lock_word);
  if (words <= 1) return {};
  return body.subspan(
      sizeof(arctrace_frame_body),
      std::min<size_t>(words - 1, ARCTRACE_LOCK_WORDS_MAX) * sizeof(arctrace_lock_word));
}

// The addresses of locks in an ENTER record, as the body of an ARGUMENTS record.
class LockArgs {
 public:
  // `words`: see lock_words().
  explicit LockArgs(std::span<const std::byte> words);
  std::span<const std::byte> body() const { return std::span(bytes_).first(size_); }

 private:
  static constexpr size_t kArgBytes =
      sizeof(arctrace_arg_head) + sizeof(arctrace_lock_word);

  std::array<std::byte, sizeof(arctrace_args_body) + ARCTRACE_LOCK_WORDS_MAX * kArgBytes>
      bytes_;
  size_t size_;
};

// The result of a system call that failed, as the body of a RESULT record: -1 and errno,
// as the function of libc around it returns them.
class SyscallError {
 public:
  explicit SyscallError(uint32_t number);
  std::span<const std::byte> body() const { return bytes_; }

 private:
  std::array<std::byte, sizeof(arctrace_args_body) +
                            2 * (sizeof(arctrace_arg_head) + sizeof(int32_t))>
      bytes_;
};

// Returns the errno in what the kernel returned from a system call; 0: it did not fail.
inline uint32_t syscall_errno(int64_t result) {
  constexpr int64_t kErrnoMax = 4095;
  return result < 0 && result >= -kErrnoMax ? static_cast<uint32_t>(-result) : 0;
}

// Returns the errno among the values of a RESULT; 0: the call did not fail, or that is
// not known.
int64_t errno_of(std::span<const CallArg> values);

// Returns the name id of the args' names; nullopt if they have none.
std::optional<uint32_t> find_arg_names(std::span<const std::byte> body);

// Returns the shortest decimal form that reads back the same, or inf, nan. REQUIRES: of
// kind FLOAT.
std::string float_digits(const CallArg& arg);

// Returns the word for a number that has names, or flags joined by |; empty if it has
// none.
std::string arg_word(const CallArg& arg);

// Returns "ENOENT"; a number without a name as digits.
std::string errno_word(int64_t number);

// Returns an arg as strace writes it: "/etc/pas"..., 0x7ffe, NULL, O_RDONLY|O_CLOEXEC,
// 0644, 'a', -1. Escaped for a terminal.
std::string arg_text(const CallArg& arg);

// Returns "(1, 2)" for ARGUMENTS, or "(a=1, b=2)" with `names` "a,b".
std::string args_text(std::span<const std::byte> body, std::string_view names);
// Returns " = 3", " = -1 ENOENT" for RESULT.
std::string retval_text(std::span<const std::byte> body, std::string_view names);

}  // namespace arctrace::reader
