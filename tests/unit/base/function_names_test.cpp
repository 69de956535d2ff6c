#include "src/base/function_names.hpp"

#include <doctest/doctest.h>

#include <string>

using arctrace::plain_linker_name;
using arctrace::without_copy_suffix;
using arctrace::without_parameters;

TEST_CASE("linker's names without the suffixes of copies") {
  CHECK(plain_linker_name("main") == "main");
  CHECK(plain_linker_name("work.constprop.0") == "work");
  CHECK(plain_linker_name("_ZN4shop3addEi.part.1.cold") == "_ZN4shop3addEi");
  CHECK(plain_linker_name(".x") == "");
  CHECK(plain_linker_name("") == "");
  CHECK(plain_linker_name(std::string(1024, 'a')).size() == 1024);
  CHECK(plain_linker_name(std::string(100'000, 'a')) == std::string(1024, 'a'));
}

TEST_CASE("reported names without the suffixes of copies") {
  CHECK(without_copy_suffix("main") == "main");
  CHECK(without_copy_suffix("work.constprop.0") == "work");
  CHECK(without_copy_suffix("f(int) [clone .part.1] [clone .cold]") == "f(int)");
  CHECK(without_copy_suffix("f(int, ...)") == "f(int, ...)");
  CHECK(without_copy_suffix(".x") == ".x");
  CHECK(without_copy_suffix("f [clone") == "f [clone");
  CHECK(without_copy_suffix("work.cold") == "work");
  CHECK(without_copy_suffix("work.part.0.isra.0") == "work");
  CHECK(without_copy_suffix("work.0") == "work");
  CHECK(without_copy_suffix("sum.avx2") == "sum");
  CHECK(without_copy_suffix("main.work") == "main.work");
  CHECK(without_copy_suffix("Stdlib.List.map_331") == "Stdlib.List.map_331");
  CHECK(without_copy_suffix("shop.serve [clone .part.0]") == "shop.serve");
  CHECK(without_copy_suffix("shop.part") == "shop.part");
  CHECK(without_copy_suffix("") == "");
}

TEST_CASE("names without parameters") {
  CHECK(without_parameters("main") == "main");
  CHECK(without_parameters("f()") == "f");
  CHECK(without_parameters("f(int, char*)") == "f");
  CHECK(without_parameters("f(void (*)(int))") == "f");
  CHECK(without_parameters("shop::add(std::string const&, int)") == "shop::add");
  CHECK(without_parameters("(anonymous namespace)::f(int)") ==
        "(anonymous namespace)::f");
  CHECK(without_parameters("std::function<void (int)>::call()") ==
        "std::function<void (int)>::call");
  CHECK(without_parameters("f[abi:cxx11](int)") == "f[abi:cxx11]");
  CHECK(without_parameters("main::{lambda(int)#1}::operator()(int) const") ==
        "main::{lambda(int)#1}::operator()");
}

TEST_CASE("names without parameters: what may follow them") {
  for (const char* end : {" const", " volatile", " const volatile", " &", " &&",
                          " const &", " requires C<int>", " [clone .cold]"}) {
    CAPTURE(std::string(end));
    CHECK(without_parameters("A::f(int)" + std::string(end)) == "A::f");
  }
}

TEST_CASE("names without parameters: operators") {
  CHECK(without_parameters("A::operator()(int) const") == "A::operator()");
  CHECK(without_parameters("operator()()") == "operator()");
  CHECK(without_parameters("A::operator()") == "A::operator()");
  CHECK(without_parameters("operator()") == "operator()");
  CHECK(without_parameters("my_operator()") == "my_operator");
  CHECK(without_parameters("A::operator<(A const&)") == "A::operator<");
  CHECK(without_parameters("operator<< <char>(A)") == "operator<< <char>");
  CHECK(without_parameters("A::operator->()") == "A::operator->");
  CHECK(without_parameters("A::operator bool() const") == "A::operator bool");
  CHECK(without_parameters("operator new(unsigned long)") == "operator new");
}

TEST_CASE("names that have parentheses, but no parameters") {
  for (const char* name :
       {"(anonymous namespace)::x", "f(int)::{lambda()#1}", "<fn(i32) as Foo>::bar",
        "main.(*T).Method", "run /tmp/copy (2).py", "(x)", "()", "(", ")", "a)", "f(a",
        "a))", ""}) {
    CAPTURE(std::string(name));
    CHECK(without_parameters(name) == name);
  }
}

TEST_CASE("a hostile name costs no more than its length") {
  const std::string deep = std::string(1'000'000, '(') + std::string(1'000'000, ')');
  CHECK(without_parameters("f" + deep) == "f");
  CHECK(without_parameters(deep + ")") == deep + ")");
}
