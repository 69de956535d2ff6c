// Arguments and return values of calls, decoded and described.
#include "reader/trace/call_args.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <random>

#include "reader/trace/shared_block.hpp"
#include "tests/support/random_script.hpp"
#include "tests/support/trace_builder.hpp"

namespace arctrace::reader {
namespace {

using testing::ArgBytes;
using testing::args_body;
using testing::Bytes;
using testing::number_arg;

std::string arguments_of(const std::vector<ArgBytes>& args) {
  return args_text(args_body(args).data(), "");
}
std::string one(uint8_t kind, uint64_t number, size_t size = 4) {
  const std::string text = arguments_of({number_arg(kind, 1, number, size)});
  return text.substr(1, text.size() - 2);
}

TEST_CASE("args are written as strace writes them") {
  CHECK(arguments_of({{ARCTRACE_VALUE_STRING, 1, "/etc/passwd"},
                      number_arg(ARCTRACE_VALUE_OPEN_FLAGS, 2, 0, 4)}) ==
        "(\"/etc/passwd\", O_RDONLY)");
  CHECK(arguments_of({}) == "()");
  CHECK(arguments_of({{ARCTRACE_VALUE_STRING_CUT, 1, "ab\n\"\x01"}}) ==
        "(\"ab\\n\\\"\\x01\"...)");
  CHECK(one(ARCTRACE_VALUE_SIGNED, uint64_t(-5), 4) == "-5");
  CHECK(one(ARCTRACE_VALUE_SIGNED, 200, 1) == "-56");
  CHECK(one(ARCTRACE_VALUE_SIGNED, INT64_MAX, 8) == "9223372036854775807");
  CHECK(one(ARCTRACE_VALUE_UNSIGNED, UINT64_MAX, 8) == "18446744073709551615");
  CHECK(one(ARCTRACE_VALUE_UNSIGNED, 0xFFFF, 2) == "65535");
  CHECK(one(ARCTRACE_VALUE_HEX, 0xBEEF, 2) == "0xbeef");
  CHECK(one(ARCTRACE_VALUE_OCTAL, 0644) == "0644");
  CHECK(one(ARCTRACE_VALUE_CHAR, 'x', 1) == "'x'");
  CHECK(one(ARCTRACE_VALUE_CHAR, '\'', 1) == "'\\''");
  CHECK(one(ARCTRACE_VALUE_CHAR, 7, 1) == "'\\x07'");
  CHECK(one(ARCTRACE_VALUE_POINTER, 0, 8) == "NULL");
  CHECK(one(ARCTRACE_VALUE_POINTER, 0x7FFE, 8) == "0x7ffe");
  CHECK(one(ARCTRACE_VALUE_STRING_LOST, 8, 8) == "0x8");
  CHECK(one(ARCTRACE_VALUE_DIRECTORY, uint64_t(AT_FDCWD)) == "AT_FDCWD");
  CHECK(one(ARCTRACE_VALUE_DIRECTORY, 3) == "3");
  CHECK(one(ARCTRACE_VALUE_OPEN_FLAGS, O_WRONLY | O_CREAT | O_CLOEXEC) ==
        "O_WRONLY|O_CREAT|O_CLOEXEC");
  CHECK(one(ARCTRACE_VALUE_OPEN_FLAGS, O_RDWR | O_SYNC | 0x40000000) ==
        "O_RDWR|O_SYNC|0x40000000");
  CHECK(one(ARCTRACE_VALUE_OPEN_FLAGS, O_ACCMODE) == "3");
  CHECK(one(ARCTRACE_VALUE_ACCESS, 0) == "F_OK");
  CHECK(one(ARCTRACE_VALUE_ACCESS, 6) == "R_OK|W_OK");
  CHECK(one(ARCTRACE_VALUE_PROTECTION, PROT_READ | PROT_EXEC) == "PROT_READ|PROT_EXEC");
  CHECK(one(ARCTRACE_VALUE_MAP_FLAGS, MAP_PRIVATE | MAP_ANONYMOUS) ==
        "MAP_PRIVATE|MAP_ANONYMOUS");
  CHECK(one(ARCTRACE_VALUE_WHENCE, 2) == "SEEK_END");
  CHECK(one(ARCTRACE_VALUE_WHENCE, 99) == "99");
  CHECK(one(ARCTRACE_VALUE_DOMAIN, AF_UNIX) == "AF_UNIX");
  CHECK(one(ARCTRACE_VALUE_SOCKET, SOCK_STREAM | SOCK_CLOEXEC) ==
        "SOCK_STREAM|SOCK_CLOEXEC");
  CHECK(one(ARCTRACE_VALUE_SIGNAL, 9) == "SIGKILL");
  CHECK(one(ARCTRACE_VALUE_SIGNAL, 999) == "999");
  CHECK(one(ARCTRACE_VALUE_CLOCK, 1) == "CLOCK_MONOTONIC");
  CHECK(one(ARCTRACE_VALUE_FLOAT, 0x3FC00000, 4) == "1.5");
  CHECK(one(ARCTRACE_VALUE_FLOAT, 0x3DCCCCCD, 4) == "0.1");
  CHECK(one(ARCTRACE_VALUE_FLOAT, 0xBFB999999999999A, 8) == "-0.1");
  CHECK(one(ARCTRACE_VALUE_FLOAT, 0x7FF0000000000000, 8) == "inf");
  CHECK(one(ARCTRACE_VALUE_BOOL, 0, 1) == "false");
  CHECK(one(ARCTRACE_VALUE_BOOL, 1, 1) == "true");
  CHECK(arguments_of({{77, 1, "\x01\x02\x03"}}) == "(0x010203)");  // a newer version's
}

TEST_CASE("args have names if there is one for each") {
  const auto body = args_body({number_arg(ARCTRACE_VALUE_SIGNED, 1, 7, 4),
                               number_arg(ARCTRACE_VALUE_BOOL, 2, 1, 1),
                               number_arg(ARCTRACE_VALUE_NAMES, 0, 9, 4)});
  CHECK(find_arg_names(body.data()) == 9);
  CHECK(decode_args(body.data(), "").size() == 2);
  CHECK(args_text(body.data(), "a,\x1b") == "(a=7, \\x1b=true)");
  for (const char* names : {"", "a", "a,b,c", ","}) {
    CHECK(args_text(body.data(), names) == "(7, true)");
  }
  CHECK_FALSE(find_arg_names(args_body({}).data()));
}

TEST_CASE("numbers have the words of their enumeration") {
  const auto written = [](uint8_t kind, uint64_t number, uint8_t size,
                          std::string_view words) {
    const auto body = args_body({number_arg(kind, 1, number, size)});
    return args_text(body.data(), words);
  };
  constexpr uint8_t kUnsigned = ARCTRACE_VALUE_UNSIGNED;
  constexpr uint8_t kSigned = ARCTRACE_VALUE_SIGNED;
  CHECK(written(kUnsigned, 5, 4, "a/0=red/5=green") == "(a=green)");
  CHECK(written(kUnsigned, 0, 1, "a/0=red/5=green") == "(a=red)");
  CHECK(written(kUnsigned, 4, 4, "a/0=red/5=green") == "(a=4)");
  CHECK(written(kUnsigned, 5, 4, "/5=green") == "(green)");
  CHECK(written(kSigned, uint64_t(-1), 4, "a/-1=none/1=one") == "(a=none)");
  CHECK(written(kUnsigned, UINT32_MAX, 4, "a/4294967295=most") == "(a=most)");
  CHECK(written(kUnsigned, 6, 8, "a/1=A/2=B/4=C") == "(a=B|C)");
  CHECK(written(kUnsigned, 14, 8, "a/1=A/2=B/4=C") == "(a=14)");
  CHECK(written(kUnsigned, 3, 4, "a/3=both/1=A/2=B") == "(a=both)");
  CHECK(written(kUnsigned, 0, 4, "a/1=A/2=B") == "(a=0)");
  for (const char* wrong :
       {"a/", "a//", "a/=x", "a/x=7", "a/7", "a/99999999999999999999=x"}) {
    CAPTURE(wrong);
    CHECK(written(kUnsigned, 7, 4, wrong) == "(a=7)");
  }
  CHECK(written(kUnsigned, 7, 4, "a/7=\x1b").find('\x1b') == std::string::npos);
  const auto result = args_body({number_arg(kUnsigned, 0, 5, 4)});
  CHECK(retval_text(result.data(), "/5=green") == " = green");
}

TEST_CASE("return values show why a call failed") {
  const auto result_of = [](const std::vector<ArgBytes>& args) {
    return retval_text(args_body(args).data(), "");
  };
  CHECK(result_of({number_arg(ARCTRACE_VALUE_SIGNED, 0, 3, 4)}) == " = 3");
  CHECK(result_of({number_arg(ARCTRACE_VALUE_SIGNED, 0, uint64_t(-1), 4),
                   number_arg(ARCTRACE_VALUE_ERRNO, 0, 2, 4)}) == " = -1 ENOENT");
  CHECK(result_of({number_arg(ARCTRACE_VALUE_POINTER, 0, 0, 8),
                   number_arg(ARCTRACE_VALUE_ERRNO, 0, 4000, 4)}) == " = NULL 4000");
  CHECK(result_of({number_arg(ARCTRACE_VALUE_ERRNO, 0, 0, 4)}) == " = 0");
  CHECK(result_of({number_arg(ARCTRACE_VALUE_ERRNO, 0, 16, 4)}) == " = EBUSY");
  CHECK(result_of({}) == " =");
}

TEST_CASE("a body that claims more than it holds is refused") {
  const auto problem = [](const Bytes& body) {
    return body_problem_untrusted(ARCTRACE_TYPE_ARGUMENTS, body.data()) != nullptr;
  };
  CHECK_FALSE(problem(args_body({{ARCTRACE_VALUE_STRING, 1, "four"}})));
  CHECK(problem(Bytes().u32(UINT32_MAX)));
  CHECK(problem(Bytes().u32(1)));
  CHECK(problem(Bytes().u32(1).u32(ARCTRACE_VALUE_STRING | 0xFFFFu << 16).u32(0)));
  CHECK(problem(Bytes().u32(1).u32(ARCTRACE_VALUE_STRING | 5u << 16).u32(0)));
  CHECK(problem(Bytes().u32(1).u32(ARCTRACE_VALUE_SIGNED | 3u << 16).u32(0)));
  CHECK(problem(Bytes().u32(1).u32(ARCTRACE_VALUE_SIGNED)));  // a number of no bytes
  CHECK(problem(Bytes().u32(1).u32(ARCTRACE_VALUE_CLOCK | 16u << 16).u64(0).u64(0)));
  CHECK(problem(Bytes().u32(1).u32(ARCTRACE_VALUE_FLOAT | 2u << 16).u32(0)));
  CHECK_FALSE(problem(Bytes().u32(1).u32(ARCTRACE_VALUE_FLOAT | 4u << 16).u32(0)));
  CHECK_FALSE(problem(Bytes().u32(1).u32(99 | 3u << 16).u32(0)));
}

TEST_CASE("the locks of an ENTER are arguments, as many as it has room for") {
  for (size_t size = 0; size <= 64; ++size) {
    CAPTURE(size);
    const std::vector<std::byte> body(size, std::byte{0x51});
    const size_t count = size < 16 ? 0 : std::min<size_t>(size / 8 - 1, 2);
    const std::span<const std::byte> words = lock_words(body);
    REQUIRE(words.size() == count * 8);
    const LockArgs locks(words);
    CHECK(body_problem_untrusted(ARCTRACE_TYPE_ARGUMENTS, locks.body()) == nullptr);
    const std::vector<CallArg> args = decode_args(locks.body(), "");
    REQUIRE(args.size() == count);
    for (uint32_t i = 0; i < count; ++i) {
      CHECK(args[i].kind == ARCTRACE_VALUE_POINTER);
      CHECK(args[i].index == i + 1);
      CHECK(args[i].number == 0x5151515151515151);
    }
  }
  const Bytes body = Bytes().u64(1).u64(0x1000).u64(0x2000).u64(0x3000);
  CHECK(args_text(LockArgs(lock_words(body.data())).body(), "") == "(0x1000, 0x2000)");
}

TEST_CASE("the error of a system call is a result") {
  const SyscallError error(2);
  CHECK(body_problem_untrusted(ARCTRACE_TYPE_RESULT, error.body()) == nullptr);
  CHECK(retval_text(error.body(), "") == " = -1 ENOENT");
  CHECK(errno_of(decode_args(error.body(), "")) == 2);
  CHECK(syscall_errno(-1) == 1);
  CHECK(syscall_errno(-4095) == 4095);
  CHECK(syscall_errno(-4096) == 0);  // an address, for all that is known
  CHECK(syscall_errno(0) == 0);
  CHECK(syscall_errno(1) == 0);
}

TEST_CASE("any bytes are refused, or written down") {
  std::mt19937_64 random(testing::test_seed());
  size_t taken = 0;
  for (int i = 0; i < 20000; ++i) {
    Bytes body;
    body.u32(random() % 4);
    for (uint64_t left = random() % 5; left > 0; --left) {
      body.u32(random() % 28 | random() % 8 << 8 | random() % 12 << 16);
      for (uint64_t words = random() % 4; words > 0; --words) body.u32(random());
    }
    for (const uint16_t type : {ARCTRACE_TYPE_ARGUMENTS, ARCTRACE_TYPE_RESULT}) {
      if (body_problem_untrusted(type, body.data()) != nullptr) continue;
      ++taken;
      CHECK(args_text(body.data(), "a,b").back() == ')');
      CHECK(retval_text(body.data(), "/1=a").starts_with(" ="));
    }
  }
  CHECK(taken > 1000);
}

}  // namespace
}  // namespace arctrace::reader
