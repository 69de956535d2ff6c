// The values that the shim records of calls of libc's functions, by the rows of
// src/base/libc_functions.inc: the auto-args, which are arguments and return values by
// the functions' prototypes, and the locks that calls are about.
#pragma once

#include <arctrace/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "src/base/libc_functions.hpp"
#include "src/hook_abi/shim_types.h"
#include "src/shim_protocol/arg_spec_code.hpp"

namespace arctrace::shim {

// The auto-args of a function. -a records those of all functions, and -A and -R those of
// the functions that they name without ARG.
struct AutoArgs {
  LibcFunctionName name;  // of the function
  // The specs, zero-terminated; the return value's is the last.
  char arg_specs[(ARCTRACE_SHIM_RECORDED_ARGS_MAX + 1) * kArgSpecSize + 1];
};

// The kind and size of an argument or return value that has this word in a prototype;
// kind 0: there is no such word.
constexpr arctrace_shim_arg_spec spec_of_word(std::string_view word) {
  struct Word {
    std::string_view word;
    uint8_t kind, size;
  };
  constexpr Word kWords[] = {{"access", ARCTRACE_VALUE_ACCESS, 4},
                             {"clock", ARCTRACE_VALUE_CLOCK, 4},
                             {"directory", ARCTRACE_VALUE_DIRECTORY, 4},
                             {"domain", ARCTRACE_VALUE_DOMAIN, 4},
                             {"errno", ARCTRACE_VALUE_ERRNO, 4},
                             {"flags", ARCTRACE_VALUE_HEX, 4},
                             {"int", ARCTRACE_VALUE_SIGNED, 4},
                             {"long", ARCTRACE_VALUE_SIGNED, 8},
                             {"map_flags", ARCTRACE_VALUE_MAP_FLAGS, 4},
                             {"mode", ARCTRACE_VALUE_OCTAL, 4},
                             {"open_flags", ARCTRACE_VALUE_OPEN_FLAGS, 4},
                             {"pointer", ARCTRACE_VALUE_POINTER, 8},
                             {"protection", ARCTRACE_VALUE_PROTECTION, 4},
                             {"signal", ARCTRACE_VALUE_SIGNAL, 4},
                             {"size", ARCTRACE_VALUE_UNSIGNED, 8},
                             {"socket", ARCTRACE_VALUE_SOCKET, 4},
                             {"string", ARCTRACE_VALUE_STRING, 8},
                             {"thread", ARCTRACE_VALUE_HEX, 8},
                             {"unsigned", ARCTRACE_VALUE_UNSIGNED, 4},
                             {"whence", ARCTRACE_VALUE_WHENCE, 4}};
  arctrace_shim_arg_spec spec{};
  for (const Word& known : kWords) {
    if (known.word != word) continue;
    spec.kind = known.kind;
    spec.size = known.size;
  }
  return spec;
}

// REQUIRES: the function has a prototype, each of whose words is known; no more than
// ARCTRACE_SHIM_RECORDED_ARGS_MAX of its arguments are recorded.
constexpr AutoArgs auto_args_of(const LibcFunction& function) {
  AutoArgs found{LibcFunctionName::of(function), {}};
  size_t used = 0;
  const auto add = [&](const arctrace_shim_arg_spec& spec) {
    for (const char letter : encode_arg_spec(spec).text) found.arg_specs[used++] = letter;
  };
  PrototypeWords words(function.prototype);
  uint8_t argument = 0;
  for (std::string_view word; !(word = words.next_argument()).empty();) {
    ++argument;
    if (word == "_") continue;
    arctrace_shim_arg_spec spec = spec_of_word(word);
    spec.argument = argument;
    add(spec);
  }
  if (words.result().empty()) return found;
  arctrace_shim_arg_spec result = spec_of_word(words.result());
  result.failure = static_cast<uint8_t>(words.failure());
  add(result);
  return found;
}

inline constexpr auto kAutoArgsTable = [] {
  constexpr auto has_prototype = [](const LibcFunction& function) {
    return function.prototype[0] != '\0';
  };
  constexpr auto count = static_cast<size_t>(
      std::count_if(std::begin(kLibcFunctions), std::end(kLibcFunctions), has_prototype));
  std::array<AutoArgs, count> functions{};
  size_t used = 0;
  for (const LibcFunction& function : kLibcFunctions) {
    if (has_prototype(function)) functions[used++] = auto_args_of(function);
  }
  return functions;
}();

// Whether all specs are valid.
static_assert([] {
  for (const AutoArgs& function : kAutoArgsTable) {
    for (const char* at = function.arg_specs; *at != '\0'; at += kArgSpecSize) {
      arctrace_shim_arg_spec spec{};
      if (!decode_arg_spec(at, spec)) return false;
    }
  }
  return true;
}());

// A function about locks: one that the reader's view of locks uses. The entry of each
// call has the locks' addresses.
struct LockCall {
  LibcFunctionName name;  // of the function
  uint8_t locks;          // how many of its first arguments are addresses of locks
  // If the function may return without the lock: its return value, as an arg spec
  // (arg_spec_code.hpp). Else empty.
  char result[kArgSpecSize + 1];
};

constexpr LockCall lock_call_of(const LibcFunction& function) {
  const LockUse& lock = function.lock;
  const bool is_wait =
      lock.kind == LockKind::kCondition && lock.action == LockAction::kWait;
  LockCall call{
      LibcFunctionName::of(function), static_cast<uint8_t>(is_wait ? 2 : 1), {}};
  if (lock.wait == LockWait::kForever) return call;
  const PrototypeWords words(function.prototype);
  const ArgSpecCode code = encode_arg_spec(spec_of_word(words.result()));
  std::copy(std::begin(code.text), std::end(code.text), call.result);
  return call;
}

inline constexpr auto kLockCalls = [] {
  constexpr auto is_about_locks = [](const LibcFunction& function) {
    return function.lock.action != LockAction::kNone;
  };
  constexpr auto count = static_cast<size_t>(std::count_if(
      std::begin(kLibcFunctions), std::end(kLibcFunctions), is_about_locks));
  std::array<LockCall, count> calls{};
  size_t used = 0;
  for (const LibcFunction& function : kLibcFunctions) {
    if (is_about_locks(function)) calls[used++] = lock_call_of(function);
  }
  return calls;
}();

static_assert([] {
  for (const LockCall& call : kLockCalls) {
    arctrace_shim_arg_spec result{};
    if (call.locks == 0 || call.locks > ARCTRACE_LOCK_WORDS_MAX) return false;
    if (call.result[0] != '\0' && !decode_arg_spec(call.result, result)) return false;
  }
  return true;
}());

}  // namespace arctrace::shim
