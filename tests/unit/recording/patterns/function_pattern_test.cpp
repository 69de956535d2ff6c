// Patterns of functions as the command matches them: globs and regular expressions
// against each name of a function.
#include "src/recording/patterns/function_pattern.hpp"

#include <doctest/doctest.h>

namespace arctrace::recording {
namespace {

TEST_CASE("the names of a function") {
  const FunctionNames plain("main");
  CHECK(plain.linked == "main");
  CHECK(plain.whole == "main");
  CHECK(plain.plain == "main");
  const FunctionNames method("_ZN4shop3addEi");
  CHECK(method.linked == "_ZN4shop3addEi");
  CHECK(method.whole == "shop::add(int)");
  CHECK(method.plain == "shop::add");
  // Copies that compilers make have their function's name, as in reports, and their own.
  const FunctionNames work("work.constprop.0");
  CHECK(work.linked == "work.constprop.0");
  CHECK(work.base == "work");
  CHECK(work.copy == "work.constprop.0");
  const FunctionNames part("_ZN4shop3addEi.part.1");
  CHECK(part.whole == "shop::add(int)");
  CHECK(part.plain == "shop::add");
  CHECK(part.copy == "shop::add(int) [clone .part.1]");
}

TEST_CASE("the names of functions of languages other than C++") {
  const FunctionNames rust("_ZN2ab5inner7descend17h74816575676c7c74E");
  CHECK(rust.copy == "ab::inner::descend");
  CHECK(rust.plain == "ab::inner::descend");
  const FunctionNames ocaml("camlShop__serve_12");
  CHECK(ocaml.copy == "Shop.serve_12");
  CHECK(ocaml.plain == "Shop.serve");
  const FunctionNames d("_D3app3fooFiZv");
  CHECK(d.copy == "app.foo(int)");
  CHECK(d.plain == "app.foo");
  // A C function may be called so; messages name it as the linker does.
  const FunctionNames perhaps_ada("uv__io_poll");
  CHECK(perhaps_ada.copy == "uv__io_poll");
  CHECK(perhaps_ada.plain == "uv__io_poll");
  CHECK(FunctionPattern("uv.io_poll").matches_any(perhaps_ada));
}

TEST_CASE("a glob matches any of the names, as a whole") {
  const FunctionNames add("_ZN4shop3addEi");
  for (const char* pattern :
       {"shop::add", "shop::*", "shop::add(int)", "_ZN4shop*", "*"}) {
    CAPTURE(std::string(pattern));
    CHECK(FunctionPattern(pattern).matches_any(add));
    CHECK_FALSE(FunctionPattern(pattern).is_regex());
  }
  for (const char* pattern : {"shop", "add", "shop::add(long)", "shop::a"}) {
    CAPTURE(std::string(pattern));
    CHECK_FALSE(FunctionPattern(pattern).matches_any(add));
  }
  CHECK(FunctionPattern("a[bc]?").matches("abx"));
  CHECK_FALSE(FunctionPattern("a[!bc]?").matches("abx"));
  CHECK(FunctionPattern("a\\*").matches("a*"));
  CHECK_FALSE(FunctionPattern("a\\*").matches("ab"));
}

TEST_CASE("a copy matches its own names and those of its function") {
  const FunctionNames part("_ZN4shop3addEi.part.1");
  for (const char* pattern : {"shop::add", "shop::add(int)", "_ZN4shop3addEi",
                              "_ZN4shop3addEi.part.1", "*[[]clone .part.1]", "re:part"}) {
    CAPTURE(std::string(pattern));
    CHECK(FunctionPattern(pattern).matches_any(part));
  }
  CHECK_FALSE(FunctionPattern("*.part.2").matches_any(part));
}

TEST_CASE("an instance of a template matches without its return type and arguments") {
  const FunctionNames sort("_ZN3app4sortIiEEvSt6vectorIT_SaIS2_EE.constprop.0");
  CHECK(sort.brief == "app::sort");
  for (const char* pattern :
       {"app::sort", "app::*", "*::sort", "app::sort<int>", "void app::sort<int>",
        "app::sort<int>(std::vector<int, std::allocator<int> >)",
        "void app::sort<int>(*)", "re:^app::sort$", "re:sort"}) {
    CAPTURE(std::string(pattern));
    CHECK(FunctionPattern(pattern).matches_any(sort));
  }
  for (const char* pattern : {"sort", "app::sort<long>", "app::sort(int)", "re:^sort"}) {
    CAPTURE(std::string(pattern));
    CHECK_FALSE(FunctionPattern(pattern).matches_any(sort));
  }
  const FunctionNames serve(
      "_ZN4DeskIiE5serveERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE");
  CHECK(serve.brief == "Desk::serve");
  CHECK(FunctionPattern("Desk<int>::serve(std::string const&)").matches_any(serve));
}

TEST_CASE("what is wrong with a pattern") {
  CHECK_FALSE(pattern_problem("f*").has_value());
  CHECK_FALSE(pattern_problem("re:^f(o|a)$").has_value());
  CHECK(pattern_problem("[f").has_value());
  CHECK(pattern_problem("re:f(").has_value());
  CHECK(pattern_problem("re:").has_value());
}

TEST_CASE("functions of a trace that are near a pattern have their short names") {
  const std::vector<std::string> functions = {
      "int bench::slow_sort<int>(std::vector<int>) [clone .constprop.0]",
      "int bench::slow_sort<long>(std::vector<long>)", "main"};
  CHECK(unmatched_pattern({"bench::slow_sort"}, functions).empty());
  CHECK(unmatched_pattern({"re:sort<long>"}, functions).empty());
  for (const char* near : {"slow_sor", "Slow_Sort", "slow_srot"}) {
    CHECK(unmatched_pattern({near}, functions) ==
          "no function of the trace matches \"" + std::string(near) +
              "\"; did you mean \"bench::slow_sort\"?");
  }
}

TEST_CASE("a regular expression matches a part, unless it is anchored") {
  const FunctionPattern part("re:op::a");
  CHECK(part.is_regex());
  CHECK(part.text() == "re:op::a");
  CHECK(part.matches("shop::add"));
  CHECK(FunctionPattern("re:^str(len|dup)$").matches("strdup"));
  CHECK_FALSE(FunctionPattern("re:^str(len|dup)$").matches("strdupa"));
}

}  // namespace
}  // namespace arctrace::recording
