#include "src/calls/call_args.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>

#include "src/base/memory.hpp"
#include "src/base/raw_syscall.hpp"
#include "src/os/kernel_use.hpp"
#include "src/process/process_identity.hpp"
#include "src/process/session.hpp"

namespace arctrace {
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

// Up to `size` bytes at `address`, as far as they are there; returns how many.
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
  // A vfork child may be forbidden to read its parent's memory; that it is its own is not
  // seen.
  if (got == -EPERM) got = read_of(sys::getpid());
  return got < 0 ? 0 : static_cast<size_t>(got);
}

// At most kStringMax bytes of it.
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

// How libstdc++'s std::string begins.
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

// Its bits. False: they can't be read; their address.
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

}  // namespace arctrace
