// Programs for another machine that were not built for tracing run emulated with the
// shim: they do what they do without it, and their library calls are counted.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "tests/processes/emulator.hpp"
#include "tests/support/child.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace::testing {
namespace {

using Counts = std::map<std::string, uint64_t>;

const char* emulator() { return std::getenv("ARCTRACE_TEST_EMULATOR"); }

// The variants are built without return-address signing and branch targets, and with
// both.
constexpr const char* kVariants[] = {"plain", "protected"};

std::string text_of(const std::string& file) {
  const std::vector<std::byte> bytes = read_file(file);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Starts a command that runs emulated in a variant's directory. `variables` are set for
// the program, not for the emulator.
int start_program(const std::string& variant, const std::vector<std::string>& command,
                  const std::vector<std::string>& variables, const std::string& output) {
  return start_child([&] {
    const std::string directory = std::string(std::getenv("ARCTRACE_TEST_FIXTURES"));
    REQUIRE(chdir((directory + "/" + variant).c_str()) == 0);
    const int file = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    REQUIRE(file >= 0);
    dup2(file, 1);
    dup2(file, 2);
    std::vector<std::string> words;
    for (const std::string& variable : variables) {
      words.insert(words.end(), {"-E", variable});
    }
    words.insert(words.end(), command.begin(), command.end());
    exec_command(emulator(), words);
  });
}

// Records a command with the shim's `options`. The program's output and end must be as
// without a tracer.
DecodedTrace record(const std::string& variant, const std::vector<std::string>& command,
                    const std::string& options,
                    const std::string& binding = "LD_BIND_NOW=1") {
  CAPTURE(variant);
  CAPTURE(command[0]);
  CAPTURE(options);
  const TemporaryDirectory directory;
  const std::string bare_ended =
      wait_for_child(start_program(variant, command, {}, directory.path("bare")));
  // There are a block and a slot for each thread, because without robust lists none is
  // freed.
  recorder::BufferOptions buffer = small_buffer(4096, 16384, 4096);
  buffer.clock = ARCTRACE_CLOCK_MONOTONIC;
  TestSession test(buffer);
  const int pid = start_program(
      variant, command,
      {"LD_PRELOAD=" + std::string(std::getenv("ARCTRACE_TEST_SHIM")), binding,
       "ARCTRACE_SESSION=" + test.path(), "ARCTRACE_OPTIONS=" + options},
      directory.path("traced"));
  while (!has_ended(pid)) {
    if (test.drain().round() == 0) usleep(10000);
  }
  CHECK(wait_for_child(pid) == bare_ended);
  CHECK(text_of(directory.path("traced")) == text_of(directory.path("bare")));
  CHECK(bare_ended != "exit code 127");  // the program exists
  mark_dead(test.view(), pid);
  DecodedTrace trace = test.finish();
  CHECK(joined(trace.problems) == "");
  CHECK(joined(undefined_uses(trace)) == "");
  return trace;
}

std::map<uint64_t, std::string> names(const DecodedTrace& trace) {
  std::map<uint64_t, std::string> found;
  for (const DecodedRecord& string : trace.of_type(ARCTRACE_TYPE_STRING)) {
    found[string.u32(4)] = string.text(12, string.u32(8));
  }
  return found;
}

// Counts calls by name.
Counts calls(const DecodedTrace& trace) {
  std::map<uint64_t, std::string> name_of = names(trace);
  Counts counts;
  for (const DecodedRecord& enter : trace.of_type(ARCTRACE_TYPE_ENTER)) {
    const uint64_t key = enter.u64(0);
    CHECK((key & ARCTRACE_FRAME_LIBRARY_BIT) != 0);
    ++counts[name_of[key & UINT32_MAX]];
  }
  return counts;
}

void check_counts(const DecodedTrace& trace, const Counts& expected) {
  CHECK(trace.lost() == 0);
  Counts found = calls(trace);
  for (const auto& wanted : expected) {
    CAPTURE(wanted.first);
    CHECK(found[wanted.first] == wanted.second);
  }
}

// Each entry has an exit, except for the calls that don't return.
void check_exits(const DecodedTrace& trace, size_t without) {
  CHECK(trace.of_type(ARCTRACE_TYPE_ENTER).size() ==
        trace.of_type(ARCTRACE_TYPE_EXIT).size() + without);
  CHECK(trace.of_type(ARCTRACE_TYPE_EXIT_NAMED).empty());
  CHECK(trace.of_type(ARCTRACE_TYPE_UNWIND).empty());
}

TEST_CASE("emulated library calls: counts, through slots of each kind" *
          doctest::test_suite("emulated")) {
  const Counts expected = {{"strlen", 123}, {"strcmp", 45}, {"strdup", 7},
                           {"strtol", 6},   {"free", 6},    {"getenv", 1}};
  for (const char* variant : kVariants) {
    for (const char* program : {"./counted", "./counted_now"}) {
      const DecodedTrace trace = record(variant, {program}, "libcall=program");
      check_counts(trace, expected);
      check_exits(trace, 0);
    }
    // Where a program's addresses are fixed, the address of free is its PLT entry's.
    Counts with_pointer = expected;
    ++with_pointer["free"];
    check_counts(record(variant, {"./counted_lazy"}, "libcall=program"), with_pointer);
    // A call through a register can't be distinguished from one through a pointer.
    const DecodedTrace trace = record(variant, {"./counted_no_plt"}, "libcall=program");
    Counts found = calls(trace);
    CHECK(found["getenv"] == 1);
    for (const auto& call : found) {
      CAPTURE(call.first);
      CHECK(expected.at(call.first) == call.second);
    }
  }
}

TEST_CASE("emulated library calls: none that nobody asked for" *
          doctest::test_suite("emulated")) {
  CHECK(calls(record("plain", {"./counted"}, "")).empty());
}

TEST_CASE("emulated library calls: slots that are not bound yet are left alone" *
          doctest::test_suite("emulated")) {
  for (const char* variant : kVariants) {
    const DecodedTrace trace =
        record(variant, {"./counted_lazy"}, "libcall=all", "LD_BIND_NOW=");
    CHECK(calls(trace)["strlen"] == 0);
  }
}

TEST_CASE("emulated library calls: unwinding from a signal, wherever it comes" *
          doctest::test_suite("emulated")) {
  for (const char* variant : kVariants) {
    record(variant, {"./sampled"}, "libcall=program");
  }
}

TEST_CASE(
    "emulated library calls: arguments and results of every kind, jumps at the end" *
    doctest::test_suite("emulated")) {
  for (const char* variant : kVariants) {
    check_counts(record(variant, {"./abi"}, "libcall=program"), {{"two_doubles", 2001},
                                                                 {"four_doubles", 2000},
                                                                 {"large", 2000},
                                                                 {"many", 2000},
                                                                 {"variadic", 2000},
                                                                 {"vectors4", 2000},
                                                                 {"last_act", 2000}});
    // The library's own calls are recorded, too: one in each of two functions, which are
    // called, and jumped to.
    const DecodedTrace trace = record(variant, {"./abi"}, "libcall=all");
    check_counts(trace, {{"last_act", 2000}, {"strlen", 6000}});
    check_exits(trace, 0);
  }
}

TEST_CASE("emulated library calls: stubs are landing pads of indirect branches" *
          doctest::test_suite("emulated")) {
  for (const char* variant : kVariants) {
    check_counts(record(variant, {"./landing"}, "libcall=program"),
                 {{"strlen", 1}, {"strtol", 1}, {"getppid", 1}, {"_setjmp", 1}});
  }
}

TEST_CASE("emulated library calls: exceptions, backtraces, jumps, cancelled threads" *
          doctest::test_suite("emulated")) {
  for (const char* variant : kVariants) {
    for (const char* options : {"libcall=program", "libcall=all"}) {
      const DecodedTrace trace = record(variant, {"./unwinding"}, options);
      Counts found = calls(trace);
      CHECK(found["qsort"] >= 50 + 1 + 2000 + 40);
      CHECK(found["longjmp"] == 1000);
      CHECK(!trace.of_type(ARCTRACE_TYPE_UNWIND).empty());
      record(variant, {"./exceptions"}, options);
      record(variant, {"./jumps"}, options);
    }
  }
}

TEST_CASE("emulated library calls: modules that come and go" *
          doctest::test_suite("emulated")) {
  for (const char* variant : kVariants) {
    check_counts(record(variant, {"./loads"}, "libcall=program"),
                 {{"dlopen", 300}, {"dlclose", 300}, {"snprintf", 0}});
    check_counts(record(variant, {"./loads"}, "libcall=all"),
                 {{"dlopen", 300}, {"snprintf", 300}, {"strdup", 300}, {"free", 300}});
  }
}

TEST_CASE("emulated library calls: coroutines, threads, signals, deep recursion" *
          doctest::test_suite("emulated")) {
  for (const char* variant : kVariants) {
    record(variant, {"./coroutines"}, "libcall=all");
    record(variant, {"./storm"}, "libcall=program");
    record(variant, {"./deep"}, "libcall=program");
  }
}

TEST_CASE("emulated library calls: what they are given and return" *
          doctest::test_suite("emulated")) {
  const DecodedTrace trace =
      record("protected", {"./values"}, "libcall=program;autoargs=yes");
  std::map<uint64_t, std::string> name_of = names(trace);
  // lseek(-1, -3, SEEK_END) = -1 EBADF
  const std::vector<uint32_t> arguments = {3,
                                           1 | 1u << 8 | 4u << 16,
                                           UINT32_MAX,
                                           1 | 2u << 8 | 8u << 16,
                                           UINT32_MAX - 2,
                                           UINT32_MAX};
  const std::vector<uint32_t> result = {2, 1 | 8u << 16, UINT32_MAX, UINT32_MAX};
  const auto begins_with = [](const DecodedRecord& record,
                              const std::vector<uint32_t>& words) {
    for (size_t i = 0; i < words.size(); ++i) {
      if (record.u32(4 * i) != words[i]) return false;
    }
    return true;
  };
  size_t found_arguments = 0;
  size_t found_results = 0;
  for (const DecodedBlock& block : trace.blocks) {
    std::string innermost;
    for (const DecodedRecord& record : block.records) {
      if (record.type == ARCTRACE_TYPE_ENTER)
        innermost = name_of[record.u64(0) & UINT32_MAX];
      if (innermost != "lseek") continue;
      if (record.type == ARCTRACE_TYPE_ARGUMENTS && begins_with(record, arguments))
        ++found_arguments;
      if (record.type == ARCTRACE_TYPE_RESULT && begins_with(record, result))
        ++found_results;
    }
  }
  CHECK(found_arguments == 1);
  CHECK(found_results == 1);
}

}  // namespace
}  // namespace arctrace::testing
