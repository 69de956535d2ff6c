// C++ names demangled, hostile ones included.
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

#include "reader/symbols/symbolizer.hpp"

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
