// Names of C++ and other languages demangled, hostile ones included.
#include "reader/symbols/demangle.hpp"

#include <cxxabi.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <typeinfo>
#include <vector>

namespace arctrace::reader {
namespace {

std::string by_abi(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : name;
}

// The back reference to the n-th component.
std::string reference(unsigned n) {
  if (n == 0) return "S_";
  std::string digits;
  for (n -= 1; digits.empty() || n != 0; n /= 36) {
    digits.insert(digits.begin(), "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[n % 36]);
  }
  return "S" + digits + "_";
}

// A pair of pairs of pairs ...: 2^depth ints in about 5 x depth bytes.
std::string doubling_type(unsigned depth) {
  std::string type = "S_IiiE";
  for (unsigned i = 1; i < depth; ++i) {
    type.insert(0, "S_I");
    type.append(reference(i)).append("E");
  }
  return "4pairI" + type + reference(depth) + "E";
}

TEST_CASE("as the C++ ABI's demangler has it") {
  using Deep =
      std::map<std::string, std::vector<std::tuple<int, std::function<void(double)>>>>;
  for (const std::string& name :
       {std::string("_ZN7fixture5ShapeC1Eid"), std::string("_Z3addii"),
        std::string("_ZNK7fixture4PairIiLm3EE3sumIdEEiT_"),
        std::string("_ZSt4moveIRSsEONSt16remove_referenceIT_E4typeEOS2_"),
        std::string("_ZZ4mainENKUlvE_clEv"), std::string("_Z3fooi.constprop.0"),
        std::string("_ZNSt4pairIKllEC2IJRS0_EJLm0EEJEJEEERSt5tupleIJDpT_EERS4_IJDpT1_EESt"
                    "12_Index_tupleIJXspT0_EEESD_IJXspT2_EEE"),
        "_Z1f" + std::string(typeid(Deep).name())}) {
    CAPTURE(name);
    CHECK(demangle_untrusted(name) == by_abi(name));
    CHECK(demangle_untrusted(name) != name);
  }
}

TEST_CASE("templates and parameters are kept whole") {
  CHECK(demangle_untrusted("_ZNK7fixture4PairIiLm3EE3sumIdEEiT_") ==
        "int fixture::Pair<int, 3ul>::sum<double>(double) const");
}

TEST_CASE("names of languages other than C++") {
  CHECK(demangle_untrusted("_ZN2ab5inner7descend17h74816575676c7c74E") ==
        "ab::inner::descend");
  CHECK(demangle_untrusted("_RNvNtCs1234_2ab5inner7descend") == "ab::inner::descend");
  CHECK(demangle_untrusted("camlStdlib__List__map_331") == "Stdlib.List.map_331");
  CHECK(demangle_untrusted("__shapes_MOD_area") == "shapes::area");
  CHECK(demangle_untrusted("ada__text_io__put_line__2") == "ada.text_io.put_line");
}

TEST_CASE("names that C functions may have are Ada's where they are said to be") {
  CHECK(demangle_untrusted("uv__io_poll") == "uv__io_poll");
  CHECK(demangle_untrusted("uv__io_poll", ShowsAda::kNo) == "uv__io_poll");
  CHECK(demangle_untrusted("shop__serve__2", ShowsAda::kYes) == "shop.serve");
  CHECK(demangle_untrusted("main", ShowsAda::kYes) == "main");
}

// As `c++filt -s dlang` has them.
TEST_CASE("names of D") {
  CHECK(demangle_untrusted("_D3app3fooFiZv") == "app.foo(int)");
  CHECK(demangle_untrusted("_D3app4Desk5serveMFiZv") == "app.Desk.serve(int)");
  CHECK(demangle_untrusted("_D3app__T3fooTiZQhFiZi") == "app.foo!(int).foo(int)");
  CHECK(demangle_untrusted("_Dmain") == "D main");
  CHECK(demangle_untrusted("_D3app3fooFiZv.cold") == "app.foo [clone .cold]");
  CHECK(demangle_untrusted("_DYNAMIC") == "_DYNAMIC");
}

TEST_CASE("names of D that stand for far too much are not demangled whole") {
  // A tuple of tuples, each with two references to the one before it.
  std::string types = "B2ii";
  size_t last = types.size();
  for (int i = 0; i < 30; ++i) {
    const auto back = [&](size_t to) {
      std::string digits(1, static_cast<char>('a' + to % 26));
      for (to /= 26; to != 0; to /= 26) {
        digits.insert(digits.begin(), static_cast<char>('A' + to % 26));
      }
      return "Q" + digits;
    };
    const std::string first = "B2" + back(last + 2);
    last = first.size() + 3;
    types += first + back(first.size() + (last - 3));
  }
  CHECK(demangle_untrusted("_D3app3fooF" + types + "Zv") == "app.foo");
  // A template's symbol, whose length may be divided in ten ways, within another one.
  std::string symbol = "3fooFZv";
  for (int i = 0; i < 30; ++i) symbol.insert(0, "__T3barS5555555555").append("Z");
  CHECK(demangle_untrusted("_D3app" + symbol) == "_D3app" + symbol);
  demangle_untrusted("_D3app3fooF" + std::string(1'000'000, 'P') + "iZv");
}

TEST_CASE("other names stay as they are") {
  for (const std::string name :
       {"main", "", "_Z", "_ZN", "i", "_Z3ab", "_start", "_Zzz"}) {
    CHECK(demangle_untrusted(name) == name);
  }
}

// These would take for ever or all memory without a limit: the test would end by its
// time-out.
TEST_CASE("names that stand for far too much stay as they are") {
  const std::string bomb = "_Z1f" + doubling_type(60);
  CHECK(demangle_untrusted(bomb) == bomb);
  const std::string pack_bomb = "_Z1fDp" + doubling_type(60);
  CHECK(demangle_untrusted(pack_bomb) == pack_bomb);
  CHECK(demangle_untrusted("_Z1f" + doubling_type(3)) != "_Z1f" + doubling_type(3));
}

TEST_CASE("deep nesting does not use up the stack") {
  for (const size_t depth : {size_t{900}, size_t{10'000}, size_t{1'000'000}}) {
    demangle_untrusted("_Z1f" + std::string(depth, 'P') + "i");
    demangle_untrusted("_Z1f" + std::string(depth, 'N'));
    demangle_untrusted("_Z1fIJ" + std::string(depth, 'J'));
  }
}

TEST_CASE("random mangled-looking names give bounded text") {
  const auto seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937 random(seed);
  const std::vector<std::string> parts{
      "S_", "S0_", "S1_",  "S2_", "T_", "T0_", "I",   "E",  "J",  "N", "Dp",
      "sp", "i",   "P",    "R",   "K",  "1a",  "2bb", "St", "F",  "v", "C1",
      "X",  "L",   "Li5E", "cv",  "sZ", "DT",  "fp_", "Ul", "E_", "_Z"};
  for (int round = 0; round < 20'000; ++round) {
    std::string name = "_Z1f";
    const size_t count = random() % 60;
    for (size_t i = 0; i < count; ++i) name += parts[random() % parts.size()];
    CHECK(demangle_untrusted(name).size() <= 64 << 10);
  }
}

}  // namespace
}  // namespace arctrace::reader
