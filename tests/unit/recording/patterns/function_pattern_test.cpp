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
