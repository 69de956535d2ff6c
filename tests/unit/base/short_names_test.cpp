// The short forms of demangled names.
#include "src/base/short_names.hpp"

#include <doctest/doctest.h>

#include <string>

#include "tests/support/random.hpp"

namespace arctrace {
namespace {

std::string form_of(const std::string& name, NameForm form) {
  std::string text(name.size(), '\0');
  text.resize(write_name_form(name, form, text.data()));
  return text;
}

std::string short_of(const std::string& name) { return form_of(name, NameForm::kShort); }

constexpr const char* kString =
    "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >";

TEST_CASE("short names: the three forms") {
  const std::string name =
      "int app::sort<int>(std::vector<int, std::allocator<int> >) [clone .constprop.0]";
  CHECK(short_of(name) == "app::sort");
  CHECK(form_of(name, NameForm::kWithArguments) == "app::sort<int>");
  CHECK(form_of(name, NameForm::kWithParameters) ==
        "app::sort<int>(std::vector<int, std::allocator<int> >)");
  for (const NameForm form : kNameForms) CHECK(form_of("main", form) == "main");
  CHECK(form_of("f(int) const", NameForm::kWithArguments) == "f");
  CHECK(form_of("f(int) const", NameForm::kWithParameters) == "f(int) const");
}

TEST_CASE("short names: return types, which only instances of templates have") {
  CHECK(short_of("void f<int>(int)") == "f");
  CHECK(short_of("std::vector<int> const& a::f<int>(int)") == "a::f");
  CHECK(short_of("decltype (auto) f<(E)1>(int)") == "f");
  CHECK(short_of("decltype ((*this).x) A<int>::f<int>(int) const") == "A::f");
  CHECK(short_of("std::enable_if<(sizeof(int) > 2), int>::type f<int>()") == "f");
  CHECK(short_of("unsigned long const* f<unsigned long>()") == "f");
  CHECK(short_of("void (*f<int>(int))(char)") == "f");
  CHECK(form_of("int (&f<int>(int))(char)", NameForm::kWithParameters) == "f<int>(int)");
  CHECK(short_of("A<int>::f(int)") == "A::f");
  CHECK(short_of("non-virtual thunk to A<int>::f()") == "non-virtual thunk to A::f");
  CHECK(short_of("auto main::{lambda(auto:1)#1}::operator()<int>(int) const") ==
        "main::{lambda(auto:1)#1}::operator()");
  CHECK(
      short_of("auto A::f(int) const::{lambda(auto:1)#1}::operator()<int>(int) const") ==
      "A::f::{lambda(auto:1)#1}::operator()");
}

TEST_CASE("short names: operators") {
  CHECK(short_of("std::ostream& std::operator<< <std::char_traits<char> >(std::ostream&, "
                 "char const*)") == "std::operator<<");
  CHECK(short_of("A::operator<(A const&)") == "A::operator<");
  CHECK(short_of("A::operator->()") == "A::operator->");
  CHECK(short_of("bool operator><int>(A<int>, int)") == "operator>");
  CHECK(short_of("std::strong_ordering operator<=><int>(A<int>)") == "operator<=>");
  CHECK(short_of("A<int>::operator()(int) const") == "A::operator()");
  CHECK(short_of("A<int>::operator[](int)") == "A::operator[]");
  CHECK(short_of("A::operator std::vector<int>() const") == "A::operator std::vector");
  CHECK(short_of("A::operator unsigned int<int>()") == "A::operator unsigned int");
  CHECK(short_of("A::operator newer() const") == "A::operator newer");
  CHECK(short_of("operator new(unsigned long)") == "operator new");
  CHECK(short_of("A::operator delete[](void*)") == "A::operator delete[]");
  CHECK(short_of("operators<int>::f()") == "operators::f");
  CHECK(short_of("A::operator<(A const&)::{lambda()#1}::operator()() const") ==
        "A::operator<::{lambda()#1}::operator()");
}

TEST_CASE("short names: functions in others, namespaces without a name, tags") {
  CHECK(short_of("(anonymous namespace)::f<int>(int)") == "(anonymous namespace)::f");
  CHECK(short_of("void (anonymous namespace)::f<int>(int)") ==
        "(anonymous namespace)::f");
  CHECK(short_of("a::(anonymous namespace)::f(int)") == "a::(anonymous namespace)::f");
  CHECK(short_of("f(int)::Local::g(int)") == "f::Local::g");
  CHECK(form_of("f(int)::Local::g(int)", NameForm::kWithArguments) == "f(int)::Local::g");
  CHECK(short_of("main::{lambda(int)#1}::operator()(int) const") ==
        "main::{lambda(int)#1}::operator()");
  CHECK(short_of("f[abi:cxx11](int)") == "f");
  CHECK(short_of("operator[][abi:cxx11](int)") == "operator[]");
}

TEST_CASE("short names: std::string is called so") {
  const std::string string = kString;
  CHECK(short_of(string + "::append(char const*)") == "std::string::append");
  CHECK(short_of("f(" + string + " const&)") == "f");
  CHECK(form_of("void f<" + string + " >(" + string + " const&)",
                NameForm::kWithParameters) == "f<std::string >(std::string const&)");
  CHECK(short_of("A::operator " + string + "() const") == "A::operator std::string");
  CHECK(short_of("main::{lambda(" + string + ")#1}::operator()(" + string + ") const") ==
        "main::{lambda(std::string)#1}::operator()");
  CHECK(short_of("std::__cxx11::basic_string<wchar_t>::append()") ==
        "std::__cxx11::basic_string::append");
}

TEST_CASE("short names of other languages, of copies, and of what only looks like one") {
  for (const char* name : {"main",
                           "<ab::Shop as core::fmt::Display>::fmt",
                           "py::<module>:/x.py",
                           "D main",
                           "Stdlib.List.map_331",
                           "app.foo!(int).foo",
                           "main.(*T).Method",
                           "nginx+0x12",
                           "",
                           "<",
                           ">",
                           "(",
                           "f<",
                           "f(",
                           "f)",
                           "{",
                           "[",
                           "operator",
                           "operator ",
                           "[patching]",
                           "K:signal 11"}) {
    CAPTURE(std::string(name));
    CHECK(short_of(name) == name);
  }
  CHECK(short_of("core::ptr::drop_in_place<ab::Shop>") == "core::ptr::drop_in_place");
  CHECK(short_of("app.foo!(int).foo(int)") == "app.foo!(int).foo");
  CHECK(short_of("work.constprop.0") == "work");
}

TEST_CASE("short names: any bytes have forms that are no longer") {
  testing::Random random(20261129);
  constexpr std::string_view kParts[] = {
      "operator", "<",     ">", "(",      ")",           " ",     "::", "f",   "{",
      "}",        "[abi:", "]", " const", " [clone .x]", kString, "->", "int", "."};
  for (int i = 0; i < 20'000; ++i) {
    std::string name;
    for (uint64_t n = random.next() % 12; n > 0; --n) {
      name += kParts[random.next() % std::size(kParts)];
    }
    CAPTURE(name);
    for (const NameForm form : kNameForms) {
      std::string text(name.size() + 1, '\x7f');
      const size_t size = write_name_form(name, form, text.data());
      REQUIRE(size <= name.size());
      REQUIRE(text.back() == '\x7f');
    }
    if (!has_name_forms(name)) {
      CHECK(form_of(name, NameForm::kWithParameters) ==
            std::string(without_copy_suffix(name)));
    }
  }
}

}  // namespace
}  // namespace arctrace
