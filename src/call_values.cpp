#include "src/call_values.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>

#include "src/memory.hpp"
#include "src/raw_syscall.hpp"
#include "src/session.hpp"

namespace arctrace {
namespace {

constexpr uintptr_t kPageMin = 4096;  // pages are this large, or a multiple of it

void add_word(ValuesBody& body, uint32_t word) {
  __builtin_memcpy(body.bytes + body.size, &word, 4);
  body.size += 4;
}

void add_head(ValuesBody& body, uint32_t kind, uint32_t argument, uint32_t size) {
  add_word(body, kind | argument << 8 | size << 16);
}

void add_number(ValuesBody& body, uint32_t kind, uint32_t argument, uint32_t size,
                uint64_t number) {
  add_head(body, kind, argument, size);
  if (size < 8) number &= (uint64_t{1} << 8 * size) - 1;
  add_word(body, static_cast<uint32_t>(number));
  if (size == 8) add_word(body, static_cast<uint32_t>(number >> 32));
}

// Up to `size` bytes at `address`, as far as they are there; returns how many.
size_t read_memory(uintptr_t address, char* to, size_t size) {
  if (!session.may_call_kernel) return 0;
  // The kernel reads a part or not at all: each page is one.
  const size_t left = kPageMin - address % kPageMin;
  const size_t first = left < size ? left : size;
  const iovec local = {to, size};
  const iovec remote[2] = {{reinterpret_cast<void*>(address), first},
                           {reinterpret_cast<void*>(address + first), size - first}};
  const long got =
      raw_syscall(SYS_process_vm_readv, static_cast<long>(sys::getpid()),
                  sys::pointer_argument(&local), 1, sys::pointer_argument(remote), 2);
  return got < 0 ? 0 : static_cast<size_t>(got);
}

void add_string(ValuesBody& body, uint32_t argument, uintptr_t address) {
  if (address == 0) return add_number(body, ARCTRACE_VALUE_POINTER, argument, 8, 0);
  char text[ValuesBody::kStringMax + 1];
  const size_t got = read_memory(address, text, sizeof text);
  if (got == 0) {
    return add_number(body, ARCTRACE_VALUE_STRING_LOST, argument, 8, address);
  }
  size_t length = text_length(text, got);
  const bool is_whole = length < got;
  if (length > ValuesBody::kStringMax) length = ValuesBody::kStringMax;
  add_head(body, is_whole ? ARCTRACE_VALUE_STRING : ARCTRACE_VALUE_STRING_CUT, argument,
           static_cast<uint32_t>(length));
  const uint32_t padded = (static_cast<uint32_t>(length) + 3) & ~3u;
  fill_zero(body.bytes + body.size + length, padded - length);
  copy_bytes(body.bytes + body.size, text, length);
  body.size += padded;
}

void add_value(ValuesBody& body, const arctrace_shim_value& value, uintptr_t number) {
  if (value.kind == ARCTRACE_VALUE_STRING) {
    add_string(body, value.argument, number);
  } else {
    add_number(body, value.kind, value.argument, value.size, number);
  }
}

bool makes_file(uintptr_t open_flags) {
  constexpr uintptr_t kNameless = 020000000;  // of O_TMPFILE
  return (open_flags & (O_CREAT | kNameless)) != 0;
}

bool has_failed(const arctrace_shim_value& value, uintptr_t result) {
  if (value.failure == ARCTRACE_SHIM_FAILS_NULL) return result == 0;
  if (value.failure != ARCTRACE_SHIM_FAILS_MINUS_1) return false;
  return value.size == 4 ? static_cast<uint32_t>(result) == UINT32_MAX
                         : result == UINTPTR_MAX;
}

}  // namespace

void gather_arguments(const arctrace_shim_values& values, const uintptr_t* arguments,
                      ValuesBody& body) {
  body.size = 4;
  uint32_t count = 0;
  bool has_mode = true;
  for (uint32_t i = 0; i < values.argument_count; ++i) {
    const arctrace_shim_value& value = values.arguments[i];
    const uintptr_t number = arguments[value.argument - 1];
    // open() is given a mode only if it may make a file.
    if (value.kind == ARCTRACE_VALUE_OPEN_FLAGS) has_mode = makes_file(number);
    if (value.kind == ARCTRACE_VALUE_OCTAL && !has_mode) continue;
    add_value(body, value, number);
    ++count;
  }
  __builtin_memcpy(body.bytes, &count, 4);
}

void gather_result(const arctrace_shim_values& values, uintptr_t result,
                   ValuesBody& body) {
  const int error = errno;
  const bool failed = has_failed(values.result, result);
  body.size = 0;
  add_word(body, failed ? 2 : 1);
  add_value(body, values.result, result);
  if (failed) {
    add_number(body, ARCTRACE_VALUE_ERRNO, 0, 4, static_cast<uint32_t>(error));
  }
}

}  // namespace arctrace
