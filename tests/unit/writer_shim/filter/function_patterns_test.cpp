// Patterns of functions as the shim matches them, and the resulting flags.
#include "writer_shim/filter/function_patterns.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "tests/unit/writer_shim/fake_writer.hpp"

namespace arctrace::shim {
namespace {

constexpr uint32_t kFiltered = ARCTRACE_SHIM_FILTERED_IN;
constexpr uint32_t kNotraced = ARCTRACE_SHIM_NOTRACE;
constexpr uint32_t kHidden = ARCTRACE_SHIM_HIDDEN;

// The patterns of `text` during this object's lifetime.
class Patterns {
 public:
  explicit Patterns(const char* text) {
    fake_writer().patterns_matched = 0;
    decode_options(text, *options_);
    set_patterns(*options_);
    find_demangler();
  }
  ~Patterns() {
    *options_ = {};
    set_patterns(*options_);
  }
  Patterns(const Patterns&) = delete;
  Patterns& operator=(const Patterns&) = delete;

  static uint32_t flags(const char* name, const char* path = "/bin/x",
                        uint64_t size = 0) {
    return filter_flags(name, path, size);
  }

 private:
  std::unique_ptr<ShimOptions> options_ = std::make_unique<ShimOptions>();
};

}  // namespace

TEST_CASE("patterns: none filter nothing") {
  const Patterns patterns("libcall=all;autoargs=yes;size=1");
  CHECK_FALSE(filters_functions());
  CHECK_FALSE(filter_needs_module());
  CHECK(Patterns::flags("f") == 0);
  CHECK(matching_arg_patterns("f") == 0);
}

TEST_CASE("patterns: functions of which only the entry is recorded are not filtered") {
  const Patterns patterns("entryonly=save*");
  CHECK(filters_functions());
  CHECK(Patterns::flags("save_me") == ARCTRACE_SHIM_ENTRY_ONLY);
  CHECK(Patterns::flags("me") == 0);
  auto options = std::make_unique<ShimOptions>();
  decode_options("entryonly=save*", *options);
  CHECK_FALSE(options->filters());
}

TEST_CASE("patterns: globs and regular expressions") {
  const Patterns patterns(
      "filter=str*;filter=re:^mem(cpy|set)$;notrace=*cpy;notrace=[!a-z]*");
  CHECK(filters_functions());
  CHECK(Patterns::flags("strlen") == kFiltered);
  CHECK(Patterns::flags("strcpy") == (kFiltered | kNotraced));
  CHECK(Patterns::flags("memcpy") == (kFiltered | kNotraced));
  CHECK(Patterns::flags("memset") == kFiltered);
  CHECK(Patterns::flags("memset_s") == 0);
  CHECK(Patterns::flags("_exit") == kNotraced);
  CHECK(Patterns::flags("x") == 0);
}

TEST_CASE("patterns: what was matched is reported by bits") {
  const Patterns patterns("filter=a;notrace=b;module=c;args=A:d;args=R:e");
  Patterns::flags("nothing", "/lib/nothing");
  CHECK(fake_writer().patterns_matched == 0);
  Patterns::flags("b", "/lib/nothing");
  CHECK(fake_writer().patterns_matched == 0b00010);
  Patterns::flags("x", "/lib/c");
  CHECK(fake_writer().patterns_matched == 0b00110);
  CHECK(matching_arg_patterns("e") == 0b10000);
  CHECK(fake_writer().patterns_matched == 0b10110);
  Patterns::flags("a", "/lib/nothing");
  CHECK(matching_arg_patterns("d") == 0b01000);
  CHECK(fake_writer().patterns_matched == 0b11111);
}

TEST_CASE("patterns: C++ names with parameters and without") {
  // These are shop::Desk::serve(int), and a function of the same namespace that takes a
  // function.
  const char* const serve = "_ZN4shop4Desk5serveEi";
  const char* const apply = "_ZN4shop5applyEPFviE";
  for (const char* text : {"filter=shop::Desk::serve", "filter=shop::Desk::serve(int)",
                           "filter=_ZN4shop4Desk*", "filter=re:^shop::.*serve$"}) {
    INFO(text);
    const Patterns patterns(text);
    CHECK(Patterns::flags(serve) == kFiltered);
    CHECK(Patterns::flags(apply) == 0);
  }
  {
    const Patterns patterns("filter=(anonymous namespace)::f");
    CHECK(Patterns::flags("_ZN12_GLOBAL__N_11fEi") == kFiltered);
    CHECK(Patterns::flags("_ZN12_GLOBAL__N_12ffEi") == 0);
  }
  const Patterns patterns("filter=shop::apply;filter=Desk;filter=shop::apply(void");
  CHECK(Patterns::flags(apply) == kFiltered);
  CHECK(Patterns::flags(serve) == 0);
  CHECK(fake_writer().patterns_matched == 0b001);
}

TEST_CASE("patterns: copies of a function have its name and their own") {
  const Patterns patterns("filter=work;notrace=*.cold");
  CHECK(Patterns::flags("work.constprop.0") == kFiltered);
  CHECK(Patterns::flags("work.cold") == (kFiltered | kNotraced));
  CHECK(Patterns::flags("worker") == 0);
}

TEST_CASE("patterns: modules and sizes hide all others") {
  const Patterns patterns("module=libz.so*;module=x;size=100;filter=f");
  CHECK(filter_needs_module());
  CHECK(Patterns::flags("f", "/usr/lib/libz.so.1", 100) == kFiltered);
  CHECK(Patterns::flags("g", "/usr/lib/libz.so.1", 99) == kHidden);
  CHECK(Patterns::flags("g", "/usr/lib/libz.so.1", 0) == 0);  // not known
  CHECK(Patterns::flags("f", "/usr/lib/libx.so", 100) == (kFiltered | kHidden));
  CHECK(Patterns::flags("g", "x", 100) == 0);
  CHECK(Patterns::flags("g", "/x/y", 100) == kHidden);
}

TEST_CASE("patterns: an expression that is none matches as a glob") {
  const Patterns patterns("filter=re:(");
  CHECK(Patterns::flags("x") == 0);
  CHECK(Patterns::flags("re:(") == kFiltered);
}

TEST_CASE("patterns: names of any length") {
  const Patterns patterns("filter=a*b;notrace=a*");
  const std::string longest = std::string(1023, 'a') + "b";
  CHECK(Patterns::flags(longest.c_str()) == (kFiltered | kNotraced));
  CHECK(Patterns::flags((longest + std::string(100'000, 'c')).c_str()) ==
        (kFiltered | kNotraced));
  CHECK(Patterns::flags(("a" + longest).c_str()) == kNotraced);
}

}  // namespace arctrace::shim
