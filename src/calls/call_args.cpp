// Reads arguments and return values of calls, and checks conditions on calls when they
// end.
#include "src/calls/call_args.hpp"

#include <arctrace/arctrace.h>
#include <arctrace/format.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>

#include "src/base/large_table.hpp"
#include "src/base/memory.hpp"
#include "src/base/raw_syscall.hpp"
#include "src/os/kernel_use.hpp"
#include "src/process/process_identity.hpp"
#include "src/process/session.hpp"
#include "src/stack/timed_calls.hpp"
#include "src/writer/thread_state.hpp"

namespace arctrace::writer {

namespace {

constexpr uintptr_t kPageMin = 4096;  // pages are this large, or a multiple of it

template <class Part>
void add(ArgsBody& body, const Part& part) {
  __builtin_memcpy(body.bytes + body.size, &part, sizeof part);
  body.size += static_cast<uint32_t>(sizeof part);
}

void add_head(ArgsBody& body, uint32_t kind, uint32_t argument, uint32_t size) {
  add(body, arctrace_arg_head{.kind = static_cast<uint8_t>(kind),
                              .argument = static_cast<uint8_t>(argument),
                              .size = static_cast<uint16_t>(size)});
}

void add_number(ArgsBody& body, uint32_t kind, uint32_t argument, uint32_t size,
                uint64_t number) {
  add_head(body, kind, argument, size);
  if (size < 8) number &= (uint64_t{1} << 8 * size) - 1;
  if (size == 8) return add(body, number);
  add(body, static_cast<uint32_t>(number));
}

// Copies up to `size` bytes from `address`, as far as they can be read; returns how many.
size_t read_memory(uintptr_t address, char* to, size_t size) {
  if (!may_call_kernel()) return 0;
  // The kernel reads a part or not at all: each page is one.
  const size_t left = kPageMin - address % kPageMin;
  const size_t first = left < size ? left : size;
  const iovec local = {to, size};
  const iovec remote[2] = {{reinterpret_cast<void*>(address), first},
                           {reinterpret_cast<void*>(address + first), size - first}};
  const auto read_of = [&](uint32_t pid) {
    return raw_syscall(SYS_process_vm_readv, pid, sys::pointer_argument(&local), 1,
                       sys::pointer_argument(remote), 2);
  };
  const uint32_t known = known_pid();
  long got = known != 0 ? read_of(known) : -EPERM;
  // A vfork child may be forbidden to read its parent's memory: the kernel does not see
  // that it is the child's own.
  if (got == -EPERM) got = read_of(sys::getpid());
  return got < 0 ? 0 : static_cast<size_t>(got);
}

// Adds at most kStringMax bytes of the text.
void add_text(ArgsBody& body, uint32_t argument, const char* text, size_t length,
              bool is_whole) {
  add_head(body, is_whole ? ARCTRACE_VALUE_STRING : ARCTRACE_VALUE_STRING_CUT, argument,
           static_cast<uint32_t>(length));
  const uint32_t padded = padded_size(static_cast<uint32_t>(length));
  fill_zero(body.bytes + body.size + length, padded - length);
  copy_bytes(body.bytes + body.size, text, length);
  body.size += padded;
}

void add_lost(ArgsBody& body, uint32_t argument, uintptr_t address) {
  const uint32_t kind =
      address == 0 ? ARCTRACE_VALUE_POINTER : ARCTRACE_VALUE_STRING_LOST;
  add_number(body, kind, argument, 8, address);
}

void add_string(ArgsBody& body, uint32_t argument, uintptr_t address) {
  char text[ArgsBody::kStringMax + 1];
  const size_t got = address == 0 ? 0 : read_memory(address, text, sizeof text);
  if (got == 0) return add_lost(body, argument, address);
  const size_t length = text_length(text, got);
  const bool is_whole = length < got;
  add_text(body, argument, text,
           length < ArgsBody::kStringMax ? length : ArgsBody::kStringMax, is_whole);
}

// The first members of libstdc++'s std::string.
struct StdString {
  uintptr_t text;
  uint64_t size;
};

void add_std_string(ArgsBody& body, uint32_t argument, uintptr_t address) {
  StdString string;
  if (address == 0 || read_memory(address, reinterpret_cast<char*>(&string),
                                  sizeof string) != sizeof string) {
    return add_lost(body, argument, address);
  }
  char text[ArgsBody::kStringMax];
  const size_t wanted = string.size < sizeof text ? string.size : sizeof text;
  const size_t got = wanted == 0 ? 0 : read_memory(string.text, text, wanted);
  if (wanted != 0 && got == 0) return add_lost(body, argument, address);
  add_text(body, argument, text, got, got == string.size);
}

// The argument's bits. False: they can't be read; then `bits` is their address.
bool read_argument(const arctrace_shim_arg_spec& spec, const ArgSources& sources,
                   uint64_t& bits) {
  const bool is_vector = has_vectors(spec);
  const uint32_t i = spec.argument - 1U;
  const uint32_t registers =
      is_vector ? ARCTRACE_SHIM_VECTORS_MAX : ARCTRACE_SHIM_ARGUMENTS_MAX;
  if (i < registers) {
    bits = is_vector ? sources.vectors[i] : sources.integers[i];
    return true;
  }
  const uintptr_t address = sources.stack + (i - registers) * sizeof(uintptr_t);
  // The function may have no such argument, and the stack may end here.
  if (read_memory(address, reinterpret_cast<char*>(&bits), sizeof bits) == sizeof bits) {
    return true;
  }
  bits = address;
  return false;
}

void add_value(ArgsBody& body, const arctrace_shim_arg_spec& spec, uint64_t bits) {
  if (spec.kind == ARCTRACE_VALUE_STRING) {
    add_string(body, spec.argument, bits);
  } else if (spec.kind == ARCTRACE_SHIM_STD_STRING) {
    add_std_string(body, spec.argument, bits);
  } else {
    add_number(body, spec.kind, spec.argument, spec.size, bits);
  }
}

bool makes_file(uintptr_t open_flags) {
  constexpr uintptr_t kNameless = 020000000;  // of O_TMPFILE
  return (open_flags & (O_CREAT | kNameless)) != 0;
}

bool has_failed(const arctrace_shim_arg_spec& spec, uintptr_t result) {
  if (spec.failure == ARCTRACE_SHIM_FAILS_NULL) return result == 0;
  if (spec.failure != ARCTRACE_SHIM_FAILS_MINUS_1) return false;
  return spec.size == 4 ? static_cast<uint32_t>(result) == UINT32_MAX
                        : result == UINTPTR_MAX;
}

}  // namespace

bool has_vectors(const arctrace_shim_arg_spec& spec) {
  return spec.kind == ARCTRACE_VALUE_FLOAT;
}

bool has_vectors(const arctrace_shim_call_args& args) {
  bool found = false;
  for (uint32_t i = 0; i < args.argument_count; ++i) {
    found = found || has_vectors(args.arguments[i]);
  }
  return found;
}

void gather_args(const arctrace_shim_call_args& args, const ArgSources& sources,
                 ArgsBody& body) {
  if (args.locks != 0) {
    body.are_locks = true;
    body.size = args.locks * sizeof(arctrace_lock_word);
    copy_bytes(body.bytes, sources.integers, body.size);
    return;
  }
  body.size = sizeof(arctrace_args_body);
  uint32_t count = 0;
  bool has_mode = true;
  for (uint32_t i = 0; i < args.argument_count; ++i) {
    const arctrace_shim_arg_spec& spec = args.arguments[i];
    uint64_t number;
    if (!read_argument(spec, sources, number)) {
      add_lost(body, spec.argument, number);
      ++count;
      continue;
    }
    // open() is given a mode only if it may make a file.
    if (spec.kind == ARCTRACE_VALUE_OPEN_FLAGS) has_mode = makes_file(number);
    if (spec.kind == ARCTRACE_VALUE_OCTAL && !has_mode) continue;
    add_value(body, spec, number);
    ++count;
  }
  if (args.names != 0) {
    add_number(body, ARCTRACE_VALUE_NAMES, 0, 4, args.names);
    ++count;
  }
  const arctrace_args_body fixed{.count = count};
  __builtin_memcpy(body.bytes, &fixed, sizeof fixed);
}

void gather_retval(const arctrace_shim_call_args& args, const ArgSources& sources,
                   ArgsBody& body) {
  const int error = errno;
  const uint64_t result = has_vectors(args.result) ? *sources.vectors : *sources.integers;
  const bool failed = has_failed(args.result, result);
  body.size = 0;
  add(body, arctrace_args_body{.count = 1u + (failed ? 1 : 0) +
                                        (args.result_names != 0 ? 1 : 0)});
  add_value(body, args.result, result);
  if (failed) {
    add_number(body, ARCTRACE_VALUE_ERRNO, 0, 4, static_cast<uint32_t>(error));
  }
  if (args.result_names != 0) {
    add_number(body, ARCTRACE_VALUE_NAMES, 0, 4, args.result_names);
  }
}

void store_vectors(uint64_t (&vectors)[ARCTRACE_SHIM_VECTORS_MAX]) {
#if defined(__x86_64__)
  asm volatile(
      "movq %%xmm0, (%0)\n\t"
      "movq %%xmm1, 8(%0)\n\t"
      "movq %%xmm2, 16(%0)\n\t"
      "movq %%xmm3, 24(%0)\n\t"
      "movq %%xmm4, 32(%0)\n\t"
      "movq %%xmm5, 40(%0)\n\t"
      "movq %%xmm6, 48(%0)\n\t"
      "movq %%xmm7, 56(%0)"
      :
      : "r"(vectors)
      : "memory");
#else
  asm volatile(
      "stp d0, d1, [%0]\n\t"
      "stp d2, d3, [%0, #16]\n\t"
      "stp d4, d5, [%0, #32]\n\t"
      "stp d6, d7, [%0, #48]"
      :
      : "r"(vectors)
      : "memory");
#endif
}

namespace {

constexpr uint32_t kConditionsMax = 64;
const arctrace_shim_call_condition* conditions;
uint32_t condition_count;
ARCTRACE_LARGE_TABLE uint64_t ticks_of[kConditionsMax];  // of a condition about time

uint64_t ticks_from_ns(uint64_t ns) {
  const auto& header =
      *reinterpret_cast<const arctrace_session_header*>(session.view.base());
  const uint64_t rate = header.ticks_per_second;
  constexpr uint64_t kSecond = 1'000'000'000;
  uint64_t whole = 0;
  if (__builtin_mul_overflow(ns / kSecond, rate, &whole)) return UINT64_MAX;
  return whole + ns % kSecond * rate / kSecond;
}

template <class Number>
bool compares(uint8_t compare, Number a, Number b) {
  switch (compare) {
    case ARCTRACE_SHIM_LESS:
      return a < b;
    case ARCTRACE_SHIM_LESS_OR_EQUAL:
      return a <= b;
    case ARCTRACE_SHIM_MORE:
      return a > b;
    case ARCTRACE_SHIM_MORE_OR_EQUAL:
      return a >= b;
    case ARCTRACE_SHIM_EQUAL:
      return a == b;
    default:
      return a != b;
  }
}

bool result_fulfils(const arctrace_shim_call_condition& condition, uint64_t retval) {
  const unsigned unused = 64 - 8U * condition.size;
  const uint64_t result = retval << unused;
  const uint64_t wanted = condition.value << unused;
  if (condition.is_signed == 0) {
    // A value that the type does not have is no result.
    return compares(condition.compare, result >> unused, condition.value);
  }
  return compares(condition.compare, static_cast<int64_t>(result) >> unused,
                  static_cast<int64_t>(wanted) >> unused);
}

}  // namespace

void set_call_conditions(const arctrace_shim_call_condition* all, uint32_t count) {
  conditions = all;
  condition_count = count < kConditionsMax ? count : kConditionsMax;
  for (uint32_t i = 0; i < condition_count; ++i) {
    ticks_of[i] = ticks_from_ns(all[i].value);
  }
}

void conditional_call_begins(PendingCalls& calls, uintptr_t return_slot) {
  calls.timed.begin(return_slot, session_ticks());
}

void conditional_call_ends(uint64_t wanted, uintptr_t return_slot, uintptr_t retval) {
  PendingCalls* calls = thread_local_state.calls;
  if (calls == nullptr) return;
  const uint64_t began = calls->timed.end(return_slot);
  bool is_fulfilled = false;
  for (uint32_t i = 0; i < condition_count; ++i) {
    const arctrace_shim_call_condition& condition = conditions[i];
    if ((wanted >> i & 1) == 0) continue;
    const bool holds = condition.is_result != 0
                           ? result_fulfils(condition, retval)
                           : began != 0 && compares(condition.compare,
                                                    session_ticks() - began, ticks_of[i]);
    if (holds) arctrace_mark(condition.mark);
    is_fulfilled |= holds;
  }
  if (is_fulfilled) arctrace_snapshot(0);
}

}  // namespace arctrace::writer
