// The arguments and the return value of a call are read from registers, stack and memory;
// records say where they could not be read.
#include "src/calls/call_args.hpp"

#include <doctest/doctest.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include <cstring>
#include <string>
#include <vector>

#include "src/os/kernel_use.hpp"

namespace arctrace::testing {
namespace {

struct Value {
  uint32_t kind, argument;
  std::string bytes;
  bool operator==(const Value&) const = default;
};

std::vector<Value> values_in(const writer::ArgsBody& body) {
  uint32_t count = 0;
  REQUIRE(body.size >= 4);
  REQUIRE(body.size <= writer::ArgsBody::kBytesMax);
  std::memcpy(&count, body.bytes, 4);
  std::vector<Value> values;
  size_t at = 4;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t head = 0;
    REQUIRE(at + 4 <= body.size);
    std::memcpy(&head, body.bytes + at, 4);
    const size_t size = head >> 16;
    const size_t padded = (size + 3) / 4 * 4;
    REQUIRE(at + 4 + padded <= body.size);
    const auto* bytes = reinterpret_cast<const char*>(body.bytes) + at + 4;
    values.push_back({head & 0xFF, head >> 8 & 0xFF, {bytes, size}});
    for (size_t pad = size; pad < padded; ++pad) CHECK(bytes[pad] == 0);
    at += 4 + padded;
  }
  CHECK(at == body.size);
  return values;
}

uintptr_t address_of(const void* at) { return reinterpret_cast<uintptr_t>(at); }

// The recorded value of a string argument.
Value string_at(uintptr_t address, uint8_t kind = ARCTRACE_VALUE_STRING) {
  arctrace_shim_call_args values{};
  values.argument_count = 1;
  values.arguments[0] = {kind, 2, 8, 0};
  const uintptr_t arguments[ARCTRACE_SHIM_ARGUMENTS_MAX] = {1, address};
  writer::ArgsBody body;
  std::memset(body.bytes, 0xEE, sizeof body.bytes);
  writer::gather_args(values, {arguments, nullptr, 0}, body);
  const std::vector<Value> found = values_in(body);
  REQUIRE(found.size() == 1);
  return found[0];
}

// Forbids our own system calls during its lifetime.
struct Forbidden {
  Forbidden() { forbid_uses(kAllUses); }
  ~Forbidden() { take_back_forbidden(kAllUses); }
};

TEST_CASE("call args: locks are the first arguments as they are") {
  arctrace_shim_call_args values{};
  const uintptr_t integers[ARCTRACE_SHIM_ARGUMENTS_MAX] = {0x1000, 0x2000, 0x3000};
  for (const uint32_t count : {1u, 2u}) {
    values.locks = count;
    writer::ArgsBody body;
    writer::gather_args(values, {integers, nullptr, 0}, body);
    CHECK(body.are_locks);
    REQUIRE(body.size == 8 * count);
    CHECK(std::memcmp(body.bytes, integers, body.size) == 0);
  }
}

TEST_CASE("call args: strings whole, cut, and where none can be read") {
  CHECK(string_at(address_of("name")) == Value{ARCTRACE_VALUE_STRING, 2, "name"});
  CHECK(string_at(address_of("")) == Value{ARCTRACE_VALUE_STRING, 2, ""});
  for (const size_t length : {63u, 64u, 65u, 200u}) {
    const std::string text(length, 'x');
    const uint32_t kind = length > 64 ? ARCTRACE_VALUE_STRING_CUT : ARCTRACE_VALUE_STRING;
    CHECK(string_at(address_of(text.c_str())) == Value{kind, 2, text.substr(0, 64)});
  }
  CHECK(string_at(0) == Value{ARCTRACE_VALUE_POINTER, 2, std::string(8, '\0')});
  errno = 77;
  CHECK(string_at(8) ==
        Value{ARCTRACE_VALUE_STRING_LOST, 2, std::string("\x08\0\0\0\0\0\0\0", 8)});
  CHECK(string_at(UINTPTR_MAX - 3).kind == ARCTRACE_VALUE_STRING_LOST);
  CHECK(string_at(uintptr_t{1} << 63).kind == ARCTRACE_VALUE_STRING_LOST);
  CHECK(errno == 77);
}

TEST_CASE("call args: a string at the end of the last page that is there") {
  char* pages = static_cast<char*>(
      mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  REQUIRE(pages != MAP_FAILED);
  REQUIRE(mprotect(pages + 4096, 4096, PROT_NONE) == 0);
  char* end = pages + 4096;
  for (size_t length = 0; length < 70; ++length) {
    CAPTURE(length);
    std::memset(pages, 'y', 4096);
    end[-1] = '\0';
    const uint32_t kind = length > 64 ? ARCTRACE_VALUE_STRING_CUT : ARCTRACE_VALUE_STRING;
    CHECK(string_at(address_of(end - 1 - length)) ==
          Value{kind, 2, std::string(std::min<size_t>(length, 64), 'y')});
    end[-1] = 'y';  // the string has no end any more
    CHECK(string_at(address_of(end - 1 - length)) ==
          Value{ARCTRACE_VALUE_STRING_CUT, 2,
                std::string(std::min<size_t>(length + 1, 64), 'y')});
  }
  CHECK(string_at(address_of(end)).kind == ARCTRACE_VALUE_STRING_LOST);
  munmap(pages, 8192);
}

TEST_CASE("call args: std::string") {
  const auto string = [](const std::string& text) {
    return string_at(address_of(&text), ARCTRACE_SHIM_STD_STRING);
  };
  using namespace std::string_literals;
  CHECK(string("") == Value{ARCTRACE_VALUE_STRING, 2, ""});
  CHECK(string("short") == Value{ARCTRACE_VALUE_STRING, 2, "short"});
  CHECK(string("a\0b"s) == Value{ARCTRACE_VALUE_STRING, 2, "a\0b"s});
  for (const size_t length : {15u, 16u, 64u, 65u, 5000u}) {
    const uint32_t kind = length > 64 ? ARCTRACE_VALUE_STRING_CUT : ARCTRACE_VALUE_STRING;
    const std::string text(length, 'x');
    CHECK(string(text) == Value{kind, 2, text.substr(0, 64)});
  }
  // These are no strings: bad addresses of the object or in it, and an absurd size.
  CHECK(string_at(0, ARCTRACE_SHIM_STD_STRING).kind == ARCTRACE_VALUE_POINTER);
  CHECK(string_at(8, ARCTRACE_SHIM_STD_STRING).kind == ARCTRACE_VALUE_STRING_LOST);
  const uint64_t nowhere[2] = {8, 5};
  CHECK(string_at(address_of(nowhere), ARCTRACE_SHIM_STD_STRING).kind ==
        ARCTRACE_VALUE_STRING_LOST);
  const std::string long_text(100, 'y');
  const uint64_t endless[2] = {address_of(long_text.data()), UINT64_MAX};
  CHECK(string_at(address_of(endless), ARCTRACE_SHIM_STD_STRING) ==
        Value{ARCTRACE_VALUE_STRING_CUT, 2, std::string(64, 'y')});
}

TEST_CASE("call args: floats come from vector registers, names after all") {
  arctrace_shim_call_args values{};
  values.argument_count = 3;
  values.arguments[0] = {ARCTRACE_VALUE_FLOAT, 8, 8, 0};
  values.arguments[1] = {ARCTRACE_VALUE_SIGNED, 1, 4, 0};
  values.arguments[2] = {ARCTRACE_VALUE_FLOAT, 1, 4, 0};
  values.names = 77;
  CHECK(writer::has_vectors(values));
  const uintptr_t integers[ARCTRACE_SHIM_ARGUMENTS_MAX] = {5};
  const uint64_t vectors[ARCTRACE_SHIM_VECTORS_MAX] = {
      0xEEEEEEEE3F800000, 0, 0, 0, 0, 0, 0, 0x4000000000000000};
  writer::ArgsBody body;
  writer::gather_args(values, {integers, vectors, 0}, body);
  CHECK(
      values_in(body) ==
      std::vector<Value>{{ARCTRACE_VALUE_FLOAT, 8, std::string("\0\0\0\0\0\0\0\x40", 8)},
                         {ARCTRACE_VALUE_SIGNED, 1, std::string("\5\0\0\0", 4)},
                         {ARCTRACE_VALUE_FLOAT, 1, std::string("\0\0\x80\x3f", 4)},
                         {ARCTRACE_VALUE_NAMES, 0, std::string("M\0\0\0", 4)}});
  values.result = {ARCTRACE_VALUE_FLOAT, 0, 8, 0};
  writer::gather_retval(values, {integers, vectors + 7, 0}, body);
  CHECK(values_in(body) == std::vector<Value>{{ARCTRACE_VALUE_FLOAT, 0,
                                               std::string("\0\0\0\0\0\0\0\x40", 8)}});
}

#if defined(__x86_64__)
TEST_CASE("call args: beyond the registers come the words of the stack") {
  arctrace_shim_call_args values{};
  values.argument_count = 3;
  values.arguments[0] = {ARCTRACE_VALUE_STRING, ARCTRACE_SHIM_ARGUMENTS_MAX + 3, 8, 0};
  values.arguments[1] = {ARCTRACE_VALUE_SIGNED, ARCTRACE_SHIM_ARGUMENTS_MAX + 1, 2, 0};
  values.arguments[2] = {ARCTRACE_VALUE_FLOAT, ARCTRACE_SHIM_VECTORS_MAX + 2, 4, 0};
  const uintptr_t integers[ARCTRACE_SHIM_ARGUMENTS_MAX] = {};
  const uint64_t vectors[ARCTRACE_SHIM_VECTORS_MAX] = {};
  const uint64_t stack[] = {0xEEEE4142, 0xEEEEEEEE3F800000, address_of("third")};
  writer::ArgsBody body;
  writer::gather_args(values, {integers, vectors, address_of(stack)}, body);
  CHECK(values_in(body) ==
        std::vector<Value>{{ARCTRACE_VALUE_STRING, 9, "third"},
                           {ARCTRACE_VALUE_SIGNED, 7, "BA"},
                           {ARCTRACE_VALUE_FLOAT, 10, std::string("\0\0\x80\x3f", 4)}});
  writer::gather_args(values, {integers, vectors, 8}, body);  // nothing is there
  CHECK(values_in(body)[1] ==
        Value{ARCTRACE_VALUE_STRING_LOST, 7, std::string("\10\0\0\0\0\0\0\0", 8)});
}
#endif

TEST_CASE("call args: no system call where none may be made") {
  const Forbidden forbidden;
  CHECK(string_at(address_of("name")).kind == ARCTRACE_VALUE_STRING_LOST);
}

TEST_CASE("call args: numbers have the size of their spec") {
  arctrace_shim_call_args values{};
  values.argument_count = 4;
  values.arguments[0] = {ARCTRACE_VALUE_SIGNED, 6, 4, 0};
  values.arguments[1] = {ARCTRACE_VALUE_HEX, 1, 8, 0};
  values.arguments[2] = {ARCTRACE_VALUE_UNSIGNED, 2, 2, 0};
  values.arguments[3] = {ARCTRACE_VALUE_CHAR, 3, 1, 0};
  const uintptr_t arguments[ARCTRACE_SHIM_ARGUMENTS_MAX] = {
      0x1122334455667788, 0xAABBCCDD, 0x4142, 0, 0, 0xFFFFFFFFFFFFFFFF};
  writer::ArgsBody body;
  writer::gather_args(values, {arguments, nullptr, 0}, body);
  CHECK(values_in(body) ==
        std::vector<Value>{{ARCTRACE_VALUE_SIGNED, 6, "\xff\xff\xff\xff"},
                           {ARCTRACE_VALUE_HEX, 1, "\x88\x77\x66\x55\x44\x33\x22\x11"},
                           {ARCTRACE_VALUE_UNSIGNED, 2, "\xdd\xcc"},
                           {ARCTRACE_VALUE_CHAR, 3, "\x42"}});
}

TEST_CASE("call args: open has a mode only if it may make a file") {
  arctrace_shim_call_args values{};
  values.argument_count = 2;
  values.arguments[0] = {ARCTRACE_VALUE_OPEN_FLAGS, 1, 4, 0};
  values.arguments[1] = {ARCTRACE_VALUE_OCTAL, 2, 4, 0};
  writer::ArgsBody body;
  for (const int flags : {O_CREAT | O_RDWR, O_TMPFILE | O_RDWR, O_RDONLY, O_DIRECTORY}) {
    const uintptr_t arguments[ARCTRACE_SHIM_ARGUMENTS_MAX] = {
        static_cast<uintptr_t>(flags), 0644};
    writer::gather_args(values, {arguments, nullptr, 0}, body);
    const bool makes = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
    CHECK(values_in(body).size() == (makes ? 2 : 1));
  }
}

TEST_CASE("call args: a failed call's return value comes with errno") {
  const auto result_of = [](arctrace_shim_arg_spec value, uintptr_t result) {
    arctrace_shim_call_args values{};
    values.result = value;
    writer::ArgsBody body;
    errno = ENOENT;
    writer::gather_retval(values, {&result, nullptr, 0}, body);
    CHECK(errno == ENOENT);
    return values_in(body);
  };
  const arctrace_shim_arg_spec number = {ARCTRACE_VALUE_SIGNED, 0, 4,
                                         ARCTRACE_SHIM_FAILS_MINUS_1};
  const arctrace_shim_arg_spec pointer = {ARCTRACE_VALUE_POINTER, 0, 8,
                                          ARCTRACE_SHIM_FAILS_NULL};
  const Value error = {ARCTRACE_VALUE_ERRNO, 0, std::string("\x02\0\0\0", 4)};
  CHECK(result_of(number, 3).size() == 1);
  CHECK(result_of(number, UINT32_MAX).back() == error);
  CHECK(result_of({ARCTRACE_VALUE_SIGNED, 0, 8, ARCTRACE_SHIM_FAILS_MINUS_1}, UINT32_MAX)
            .size() == 1);
  CHECK(result_of(pointer, 0).back() == error);
  CHECK(result_of(pointer, 8).size() == 1);
  CHECK(result_of({ARCTRACE_VALUE_SIGNED, 0, 4, ARCTRACE_SHIM_FAILS_NEVER}, UINT32_MAX)
            .size() == 1);
}

}  // namespace
}  // namespace arctrace::testing
