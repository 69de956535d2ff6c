// Names of Rust's functions, hostile ones included.
#include "src/base/rust_names.hpp"

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <utility>

#include "tests/support/random.hpp"
#include "tests/support/seed.hpp"

namespace arctrace {
namespace {

// The decoded name; empty: it is none.
std::string legacy(const std::string& name) {
  std::array<char, 4096> bytes{};
  DecodedText text(bytes.data(), bytes.size());
  return decode_legacy_rust(name, text) ? std::string(bytes.data(), text.size()) : "";
}
std::string v0(const std::string& name) {
  std::array<char, 4096> bytes{};
  DecodedText text(bytes.data(), bytes.size());
  return decode_rust_v0(name, text) ? std::string(bytes.data(), text.size()) : "";
}

}  // namespace

TEST_CASE("rust: legacy names without their hashes") {
  for (const auto& [mangled, wanted] :
       {std::pair("_ZN2ab5inner7descend17h74816575676c7c74E", "ab::inner::descend"),
        {"_ZN4core3fmt9Formatter3pad17h930b740aa94f1d3aE.llvm.1234",
         "core::fmt::Formatter::pad"},
        {"_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$"
         "3bar17h930b740aa94f1d3aE",
         "<Test + 'static as foo::Bar<Test>>::bar"},
        {"_ZN4main4main28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE",
         "main::main::{{closure}}"}}) {
    const std::string name = mangled;
    CAPTURE(name);
    CHECK(legacy(name) == wanted);
  }
}

TEST_CASE("rust: names of C++ are not taken for legacy ones") {
  for (const char* name :
       {"_ZN4shop3addEi", "_ZN4shop3addE", "_ZN4shop17h0000000000000000E",
        "_ZN17h74816575676c7c74E", "_ZN4shop17h74816575676c7c7E",
        "_ZN4shop17h74816575676c7c7xE", "_ZN4shop17h74816575676c7c74Ei", "_ZN", "", "_Z",
        "_ZN99shop17h74816575676c7c74E", "_ZN0E"}) {
    CAPTURE(std::string(name));
    CHECK(legacy(name).empty());
  }
}

// From https://doc.rust-lang.org/rustc/symbol-mangling/v0.html, and what rustc 1.95 made.
TEST_CASE("rust: names of v0") {
  for (const auto& [mangled, wanted] : {
           std::pair("_RNvNtCs1234_2ab5inner7descend", "ab::inner::descend"),
           {"_RNvNtCs1234_2ab5inner7descend.cold", "ab::inner::descend"},
           {"_RNvCskwGfYPst2Cb_3foo16example_function", "foo::example_function"},
           {"_RNCNvCs1234_2ab4mains_0", "ab::main::{closure#1}"},
           {"_RINvCs7qp2U7fqm6G_7mycrate3bazlE", "mycrate::baz::<i32>"},
           {"_RNvXCs15kBYyAo9fc_7mycrateNtB2_7ExampleNtB2_5Trait3foo",
            "<mycrate::Example as mycrate::Trait>::foo"},
           {"_RNvMs_Cs4Cv8Wi1oAIB_7mycrateNtB4_7Example3foo", "<mycrate::Example>::foo"},
           {"_RINvCs7qp2U7fqm6G_7mycrate7exampleFG0_RL1_hRL0_tEuE",
            "mycrate::example::<for<'a, 'b> fn(&'a u8, &'b u16)>"},
           {"_RINvCs1234_2ab1fTlbERhQAhj3_SmE",
            "ab::f::<(i32, bool), &u8, &mut [u8; 3], [u32]>"},
           {"_RINvCs1234_2ab1fKj7b_Kanf_Kb1_Kc41_E", "ab::f::<123, -15, true, 'A'>"},
           {"_RINvCs1234_2ab1fDNtB2_5TraitEL_E", "ab::f::<dyn ab::Trait>"},
           {"_RINvCs1234_2ab1fFUKCPeEmE",
            "ab::f::<unsafe extern \"C\" fn(*const str) -> u32>"},
           {"_RNvCs1234_2abu8gdel_5qa",
            "ab::g\xC3\xB6"
            "del"},
       }) {
    const std::string name = mangled;
    CAPTURE(name);
    CHECK(v0(name) == wanted);
  }
}

TEST_CASE("rust: what is no name of v0") {
  for (const char* name : {"_R", "_RNv", "_RNvC2ab", "_RNvC2ab9x", "_Rx", "RNvC2ab1f",
                           "_RB_", "_RNvB0_1f", "_RNvC2ab1fzz", "_RINvC2ab1fKz_E"}) {
    CAPTURE(std::string(name));
    CHECK(v0(name).empty());
  }
}

// These would take for ever, all of the stack or more bytes than there are without a
// limit.
TEST_CASE("rust: names of v0 that stand for far too much") {
  std::string bomb = "_RINvC2ab1f";
  std::string type = "TllE";
  for (int i = 0; i < 60; ++i) {
    type.insert(0, "T").append("BcE");  // refers to its own beginning
  }
  bomb += type + "E";
  CHECK(v0(bomb).empty());
  CHECK(v0("_RINvC2ab1f" + std::string(1'000'000, 'S') + "lE").empty());
  CHECK(v0("_RINvC2ab1f" + std::string(1'000'000, 'R') + "lE").empty());
  CHECK(v0("_R" + std::string(1'000'000, 'I')).empty());
  CHECK(v0("_RNvC2ab5000" + std::string(5000, 'x')).empty());
}

TEST_CASE("rust: random names are decoded within bounds") {
  CAPTURE(testing::test_seed());
  testing::Random random(testing::test_seed());
  const std::array<const char*, 34> parts = {"N",    "v",     "C",
                                             "2ab",  "s_",    "I",
                                             "E",    "B",     "_",
                                             "0_",   "Y",     "X",
                                             "M",    "T",     "F",
                                             "D",    "G_",    "L_",
                                             "L0_",  "R",     "Q",
                                             "A",    "S",     "K",
                                             "j3_",  "p",     "l",
                                             "h",    "u3a_b", "1f",
                                             "Bc_",  "p1x",   "17h74816575676c7c74",
                                             "$u20$"};
  for (int i = 0; i < 50'000; ++i) {
    std::string name = random.next() % 2 == 0 ? "_R" : "_ZN";
    for (uint64_t n = random.next() % 30; n != 0; --n) {
      name += parts[random.next() % parts.size()];
    }
    legacy(name);
    v0(name);
  }
}

}  // namespace arctrace
