// The names by which functions are shown.
#include "reader/replay/shown_names.hpp"

#include <doctest/doctest.h>

#include <string>

namespace arctrace::reader {
namespace {

constexpr const char* kModule = "/bin/x";

FunctionId add(Functions& functions, const std::string& name,
               std::string_view module = kModule) {
  return functions.intern(module, name, {});
}

TEST_CASE("functions are shown by their short names, or by whole ones") {
  Functions functions;
  const FunctionId sort = add(functions, "void app::sort<int>(std::vector<int>)");
  const FunctionId work = add(functions, "work.constprop.0");
  const FunctionId plain = add(functions, "main");
  ShownNames names(functions);
  CHECK(names[sort] == "app::sort");
  CHECK(names[work] == "work");
  CHECK(names[plain] == "main");
  names.set_full(true);
  CHECK(names[sort] == "void app::sort<int>(std::vector<int>)");
  CHECK(names[work] == "work.constprop.0");
}

TEST_CASE("functions with the same short name are told apart") {
  Functions functions;
  const FunctionId of_int = add(functions, "void sort<int>(int)");
  const FunctionId of_long = add(functions, "void sort<long>(long)");
  const FunctionId of_char = add(functions, "void sort<long>(char)");
  const FunctionId f = add(functions, "f(int)");
  const FunctionId f_of_text = add(functions,
                                   "f(std::__cxx11::basic_string<char, "
                                   "std::char_traits<char>, std::allocator<char> >)");
  const FunctionId base = add(functions, "work");
  const FunctionId copy = add(functions, "work.isra.0");
  ShownNames names(functions);
  CHECK(names[of_int] == "sort<int>");
  CHECK(names[of_long] == "sort<long>(long)");
  CHECK(names[of_char] == "sort<long>(char)");
  CHECK(names[f] == "f(int)");
  CHECK(names[f_of_text] == "f(std::string)");
  CHECK(names[base] == "work");
  CHECK(names[copy] == "work.isra.0");
}

TEST_CASE("a function of two modules has one name, which its module tells apart") {
  Functions functions;
  const FunctionId one = add(functions, "f(int)");
  const FunctionId other = add(functions, "f(int)", "/lib/y");
  ShownNames names(functions);
  CHECK(names[one] == "f");
  CHECK(names[other] == "f");
}

TEST_CASE("a name that was shown stays, and later ones are told apart from it") {
  Functions functions;
  const FunctionId first = add(functions, "void sort<int>(int)");
  ShownNames names(functions);
  CHECK(names[first] == "sort");
  const FunctionId second = add(functions, "void sort<long>(long)");
  CHECK(names[second] == "sort<long>");
  CHECK(names[first] == "sort");
}

TEST_CASE("names that no compiler gave are shown as they are") {
  Functions functions;
  ShownNames names(functions);
  for (const auto& [name, module] :
       {std::pair("a < b > c (d)", ""), {"K:irq (3)", "[kernel]"}, {"f(x)", "[jit]"}}) {
    CHECK(names[add(functions, name, module)] == name);
  }
}

}  // namespace
}  // namespace arctrace::reader
