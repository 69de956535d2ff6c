// The options that determine what is recorded of the traced program.
#include <doctest/doctest.h>

#include "reader/cli/options/record_options.hpp"
#include "tests/unit/cli/options/parsed.hpp"

namespace arctrace::cli {
namespace {

struct TracedParsed {
  explicit TracedParsed(std::vector<std::string> arguments) {
    CLI::App app;
    add_traced_options(app, options);
    error = testing::parse_error(app, std::move(arguments));
  }
  recording::RecordOptions options;
  std::string error;
};

TEST_CASE("library calls of the program, of all, or none") {
  CHECK(TracedParsed({}).options.library_calls == recording::LibraryCalls::kProgram);
  CHECK(TracedParsed({"--libcall"}).options.library_calls ==
        recording::LibraryCalls::kProgram);
  CHECK(TracedParsed({"--no-libcall"}).options.library_calls ==
        recording::LibraryCalls::kNone);
  CHECK(TracedParsed({"--nest-libcall"}).options.library_calls ==
        recording::LibraryCalls::kAll);
  CHECK(TracedParsed({"--libcall", "--no-libcall"}).error != "");
  CHECK(TracedParsed({"--nest-libcall", "--no-libcall"}).error != "");
  CHECK(TracedParsed({"--nest-libcall", "--libcall"}).error != "");
}

TEST_CASE("filters of calls are added with them") {
  const TracedParsed parsed({"-F", "a", "-N", "b", "-F", "c", "-D", "1024", "-Z", "64"});
  CHECK(parsed.error == "");
  CHECK_FALSE(parsed.options.filter.is_empty());
  CHECK(parsed.options.filter.depth == 1024);
  CHECK(parsed.options.filter.size == 64);
  CHECK(TracedParsed({"-D", "0"}).error ==
        "--depth: \"0\" is not a number from 1 to 1024");
  CHECK(TracedParsed({"-Z", "x"}).error ==
        "--size-filter: \"x\" is not a size such as 64k or 1.5G");
  CHECK(TracedParsed({}).options.filter.is_empty());
}

}  // namespace
}  // namespace arctrace::cli
