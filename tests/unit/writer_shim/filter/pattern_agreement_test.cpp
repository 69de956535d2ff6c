// `arctrace ctl` searches for names in the command, and the shim matches them in the
// traced process: both must find the same functions for a pattern, though they share no
// code.
#include <doctest/doctest.h>

#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "src/hook_abi/shim_types.h"
#include "src/recording/patterns/function_pattern.hpp"
#include "src/shim_protocol/options.hpp"
#include "tests/support/random.hpp"
#include "writer_shim/filter/function_patterns.hpp"

namespace arctrace::shim {
namespace {

constexpr uint64_t kSeed = 20261123;

// Linker's names of all sorts: C, C++ with operators, templates, lambdas, conversions,
// functions as parameters, copies by the compiler, some that only look like C++, and
// other languages'. Names of D are matched without parameters by the shim alone.
const std::vector<std::string>& linker_names() {
  static const std::vector<std::string> names = {
      "main",
      "str_copy",
      "work.constprop.0",
      "_ZN4shop3addEi.part.1",
      "_ZN4shop4Desk5serveEi",
      "_ZNK4shop4Desk5serveEv",
      "_ZN4shop5applyEPFviE",
      "_ZN4shop4DeskC1Ev",
      "_ZN4shop4DeskD0Ev",
      "_ZN4shop4DeskclEi",
      "_ZN4shop4DeskixEm",
      "_ZN4shop4DeskcvbEv",
      "_ZlsRSoRKN4shop4DeskE",
      "_ZN12_GLOBAL__N_11fEi",
      "_ZN4shop3maxIiEET_S1_S1_",
      "_ZN4shop3maxIiEET_S1_S1_.constprop.0",
      "_ZN3app4sortIiEEvSt6vectorIT_SaIS2_EE",
      "_ZN4DeskIiE5serveERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
      "_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc",
      "_ZN4core3ptr44drop_in_place$LT$alloc..string..String$GT$17h0123456789abcdefE",
      "_ZZ4mainENKUliE_clEi",
      "_ZZN4shop4Desk5serveEiENKUlvE_clEv",
      "_ZN4shop6handleEPFPFviEiE",
      "_ZTV4Desk",
      "_Z",
      "_Zgarbage",
      "_Z3",
      "9numbers",
      "",
      ".dot",
      "_ZN2ab5inner7descend17h74816575676c7c74E",
      "_ZN9foo..Bar_3bar17h930b740aa94f1d3aE.llvm.12",
      "_RINvNtCs1_2ab5inner3maxlE",
      "_RNvNtCs1_2ab5inner3max.cold",
      "camlStdlib__List__map_331",
      "__shapes_MOD_area",
      "__shapes_MOD_area.part.0",
      "ada__text_io__put_line__2",
      "shop__desk__serve"};
  return names;
}

bool command_matches(const std::string& pattern, const std::string& name) {
  return recording::FunctionPattern(pattern).matches_any(recording::FunctionNames(name));
}

bool shim_matches(const std::string& pattern, const std::string& name) {
  const auto encoder = std::make_unique<OptionsEncoder>();
  encoder->add_pattern(Pattern::Kind::kNotrace, pattern);
  const auto options = std::make_unique<ShimOptions>();
  decode_options(std::string(encoder->text()).c_str(), *options);
  set_patterns(*options);
  find_demangler();
  const uint32_t flags = filter_flags(name.c_str(), "/bin/x", 0);
  *options = {};
  set_patterns(*options);
  return flags == ARCTRACE_SHIM_NOTRACE;
}

// Replaces up to three bytes or runs of `text` by wildcards.
std::string with_wildcards(std::string text, testing::Random& random) {
  for (uint64_t n = random.next() % 4; n > 0 && !text.empty(); --n) {
    const size_t at = random.next() % text.size();
    switch (random.next() % 4) {
      case 0:
        text[at] = '?';
        break;
      case 1:
        text.replace(at, random.next() % 6, "*");
        break;
      case 2:
        text.replace(at, 1, "[!x-z]");
        break;
      default:
        text.erase(at, 1);
    }
  }
  return text;
}

}  // namespace

TEST_CASE("patterns: the command and the shim match the same functions") {
  CAPTURE(kSeed);
  testing::Random random(kSeed);
  const std::vector<std::string>& names = linker_names();
  unsigned matched = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::string& name = names[random.next() % names.size()];
    const recording::FunctionNames forms(name);
    std::vector<std::string> texts = {forms.linked,        forms.base, forms.whole,
                                      forms.plain,         forms.copy, forms.decoded,
                                      forms.decoded_plain, forms.brief};
    texts.insert(texts.end(), forms.forms.begin(), forms.forms.end());
    const std::string pattern =
        with_wildcards(texts[random.next() % texts.size()], random);
    CAPTURE(pattern);
    CAPTURE(name);
    const bool found = command_matches(pattern, name);
    REQUIRE(shim_matches(pattern, name) == found);
    matched += found ? 1 : 0;
  }
  CHECK(matched > 1000);
}

TEST_CASE("patterns: the command knows which names of D the shim matches") {
  const char* const name = "_D3app4Desk5serveMFiZv";
  const recording::FunctionNames forms(name);
  CHECK(forms.copy == "app.Desk.serve(int)");
  for (const char* text : {"app.Desk.serve", "app.*", name, "app.Desk.serve(int)"}) {
    CAPTURE(std::string(text));
    const recording::FunctionPattern pattern(text);
    CHECK(pattern.matches_any(forms));
    CHECK(shim_matches(text, name) == pattern.matches_undemangled(forms));
  }
  CHECK_FALSE(shim_matches("app.Desk.serve(int)", name));
}

TEST_CASE("patterns: the command and the shim agree on regular expressions") {
  for (const char* pattern :
       {"re:^shop::", "re:serve$", "re:\\(int\\)", "re:^_ZN4", "re:operator", "re:^$",
        "re:[[:upper:]]", "re:(main|work)", "re:\\.", "re:const$", "re:^shop::max$",
        "re:^Desk::serve$", "re:std::string"}) {
    CAPTURE(std::string(pattern));
    bool any = false;
    for (const std::string& name : linker_names()) {
      CAPTURE(name);
      const bool found = command_matches(pattern, name);
      CHECK(shim_matches(pattern, name) == found);
      any = any || found;
    }
    CHECK(any);
  }
}

}  // namespace arctrace::shim
