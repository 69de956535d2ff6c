// Patterns that match nothing, and the messages about them. The text for C++ names is
// tested with programs (tests/integration/shim/test_filters.py).
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "src/recording/patterns/unmatched.hpp"

namespace arctrace::recording {
namespace {

TEST_CASE("patterns without a match are named in the order of their bits") {
  CallFilterOptions options;
  options.filter = {"a", "re:b|c"};
  options.notrace = {"100%;"};
  options.modules = {"lib*"};
  CHECK(unmatched_patterns(options, 0b0101, "/") ==
        std::vector<std::string>{"no function or scope matches -F re:b|c",
                                 "no function of a module like -L lib*"});
  options.args = {"f;@arg1/s,arg2/x32,arg3"};
  options.retvals = {"g@retval/i32"};
  CHECK(unmatched_patterns(options, 0b101111, "/") ==
        std::vector<std::string>{"no function matches -A f;"});
}

TEST_CASE("a pattern of -P that was only refused is matched") {
  CallFilterOptions options;
  options.patch = {
      ".", "main", "mainn", "lib:libc", "lib:libc:malloc", "lib:libc:mallocc"};
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  const auto has = [&](RefusedPatches refused, const std::string& pattern) {
    const auto lines = unmatched_patterns(options, 0, program, refused);
    return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
      return (line + ";").find(" -P " + pattern + ";") != std::string::npos;
    });
  };
  for (const bool refused : {false, true}) {
    CAPTURE(refused);
    CHECK(has({refused, false}, ".") != refused);
    CHECK(has({refused, false}, "main") != refused);
    CHECK(has({refused, false}, "mainn"));
    CHECK(has({refused, false}, "lib:libc"));
    CHECK(has({false, refused}, "."));
    CHECK(has({false, refused}, "lib:libc") != refused);
    CHECK(has({false, refused}, "lib:libc:malloc") != refused);
    CHECK(has({false, refused}, "lib:libc:mallocc"));
  }
}

// A session that has these functions and modules.
SessionFunctions session_of(const std::vector<std::string>& linker_names,
                            const std::vector<std::string>& modules,
                            bool is_demangled = true) {
  SessionFunctions session;
  for (const std::string& name : linker_names) {
    session.functions.insert(SessionFunction{FunctionNames(name), is_demangled});
  }
  session.modules.insert(modules.begin(), modules.end());
  return session;
}

TEST_CASE("which patterns some function of a session matches: a bit for each") {
  const SessionFunctions session =
      session_of({"open", "_ZN4shop3addEi", "work.cold"}, {"libz.so.1", "program"});
  CallFilterOptions options;
  CHECK(matched_patterns(options, session) == 0);
  options.filter = {"op*", "nobody", "shop::add"};  // bits 0 to 2
  options.notrace = {"re:^work$", "libz*"};         // 3, 4: no function's name
  options.modules = {"libz.so*", "open"};           // 5, 6: no file's name
  options.args = {"shop::add(int)@arg1/s", "ope"};
  options.retvals = {"work", "add@retval"};
  CHECK(matched_patterns(options, session) == 0b01'01'01'01'101);
  CHECK(matched_patterns(options, session_of({}, {})) == 0);
  CHECK(matched_patterns(options, session_of({}, {"libz.so.1"})) == 0b00'00'01'00'000);
}

TEST_CASE("without a demangler in the program a C++ name matches as the linker has it") {
  const SessionFunctions session = session_of({"_ZN4shop3addEi", "work.cold"}, {}, false);
  CallFilterOptions options;
  options.filter = {"shop::add", "re:shop", "_ZN4shop3addEi", "work"};  // bits 0 to 3
  CHECK(matched_patterns(options, session) == 0b1110);
}

TEST_CASE("names of languages other than C++ need no demangler, except parameters of D") {
  for (const bool is_demangled : {false, true}) {
    const SessionFunctions session =
        session_of({"_RNvNtCs1234_2ab5inner7descend", "_D3app4Desk5serveMFiZv",
                    "camlShop__serve_12", "shop__serve"},
                   {}, is_demangled);
    CallFilterOptions options;
    options.filter = {"ab::inner::descend", "app.Desk.serve", "app.Desk.serve(int)",
                      "Shop.serve", "shop.serve"};
    CHECK(matched_patterns(options, session) == 0b11011);
  }
}

TEST_CASE("near names come from the program's own functions") {
  CallFilterOptions options;
  options.filter = {"mainn", "abort_*_nobody"};
  const std::vector<std::string> lines = unmatched_patterns(options, 0, "/proc/self/exe");
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].find("\"main\"") != std::string::npos);
}

}  // namespace
}  // namespace arctrace::recording
