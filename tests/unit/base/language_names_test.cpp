// Whose names linker's names are, and what they are as reports show them.
#include "src/base/language_names.hpp"

#include <doctest/doctest.h>

#include <array>
#include <memory>
#include <string>

namespace arctrace {
namespace {

struct Decoded {
  Language language;
  std::string shown, plain;
};

Decoded decode(const std::string& name) {
  const auto bytes = std::make_unique<std::array<char, kDecodedNameMax>>();
  const DecodedName decoded = decode_name(name, bytes->data(), bytes->size());
  // What is decoded has been seen at a glance.
  if (decoded.language != Language::kNone) CHECK(may_be_decoded(name));
  return {decoded.language, std::string(bytes->data(), decoded.size),
          std::string(bytes->data(), decoded.plain_size)};
}

void check(const std::string& name, Language language, const std::string& shown,
           const std::string& plain) {
  CAPTURE(name);
  const Decoded decoded = decode(name);
  CHECK(decoded.language == language);
  CHECK(decoded.shown == shown);
  CHECK(decoded.plain == plain);
}
void check(const std::string& name, Language language, const std::string& shown) {
  check(name, language, shown, shown);
}

}  // namespace

TEST_CASE("languages: Rust") {
  check("_ZN2ab5inner7descend17h74816575676c7c74E", Language::kRust,
        "ab::inner::descend");
  check("_RNvNtCs1234_2ab5inner7descend", Language::kRust, "ab::inner::descend");
  check("_RNvNtCs1234_2ab5inner7descend.cold", Language::kRust,
        "ab::inner::descend [clone .cold]", "ab::inner::descend");
  check("_RNvNtCs1234_2ab5inner7descend.llvm.123", Language::kRust, "ab::inner::descend");
}

// As `perf report` has them.
TEST_CASE("languages: OCaml") {
  check("camlStdlib__List__map_331", Language::kOcaml, "Stdlib.List.map_331",
        "Stdlib.List.map");
  check("camlStdlib__array__map_154", Language::kOcaml, "Stdlib.array.map_154",
        "Stdlib.array.map");
  check("camlStdlib__anon_fn$5bstdlib$2eml$3a334$2c0$2d$2d54$5d_1453", Language::kOcaml,
        "Stdlib.anon_fn[stdlib.ml:334,0--54]_1453");
  check("camlStdlib__bytes__$2b$2b_2205", Language::kOcaml, "Stdlib.bytes.++_2205",
        "Stdlib.bytes.++");
  check("camlShop__entry", Language::kOcaml, "Shop.entry");
  check("camlShop.serve_12", Language::kOcaml, "Shop.serve_12", "Shop.serve");
}

// As gdb has them.
TEST_CASE("languages: Fortran's modules") {
  check("__shapes_MOD_area", Language::kFortran, "shapes::area");
  check("__a__b_MOD_c_d", Language::kFortran, "a__b::c_d");
  check("__shapes_MOD_area.constprop.0", Language::kFortran,
        "shapes::area [clone .constprop.0]", "shapes::area");
}

TEST_CASE("languages: D") {
  check("_D3app3fooFiZv", Language::kD, "app.foo");
  check("_D3app4Desk5serveMFiZv", Language::kD, "app.Desk.serve");
  check("_Dmain", Language::kD, "D main");
}

// As `c++filt -s gnat` has them.
TEST_CASE("languages: Ada") {
  check("_ada_shop", Language::kAda, "shop");
  check("ada__text_io__put_line__2", Language::kAda, "ada.text_io.put_line");
  check("system__tasking__rendezvous__call_simple", Language::kAda,
        "system.tasking.rendezvous.call_simple");
  check("shop__desk__serve", Language::kPerhapsAda, "shop.desk.serve");
  check("shop__desk__serve__2", Language::kPerhapsAda, "shop.desk.serve");
  check("shop__Oadd__3", Language::kPerhapsAda, "shop.\"+\"");
  check("shop__desk___elabb", Language::kPerhapsAda, "shop.desk'Elab_Body");
  check("shop__desk__itemDF__2Xn", Language::kPerhapsAda, "shop.desk.item.Finalize");
  check("shop__clerkTKB", Language::kPerhapsAda, "shop.clerk");
  check("shop__clerkTK__serve.12", Language::kPerhapsAda, "shop.clerk.serve");
  check("shop__guard__enter_E4s", Language::kPerhapsAda, "shop.guard.enter");
  check("shop__guard__enterP", Language::kPerhapsAda, "shop.guard.enter");
  check("shop__serve.part.0", Language::kPerhapsAda, "shop.serve [clone .part.0]",
        "shop.serve");
  check("uv__io_poll", Language::kPerhapsAda, "uv.io_poll");
}

TEST_CASE("languages: other names have none") {
  for (const char* name : {"main",
                           "",
                           "_",
                           "__",
                           "_Z3addii",
                           "_ZN4shop3addEi",
                           "__libc_start_main",
                           "caml",
                           "caml_main",
                           "camlA",
                           "camlFoo",
                           "__MOD_x",
                           "__a_MOD_",
                           "_D",
                           "_D3",
                           "_DYNAMIC",
                           "_D3app",
                           "_D3app3foo",
                           "_D99app3fooFZv",
                           "_D3app__T3fooTiZ3fooFZv",
                           "g_free",
                           "Upper__case",
                           "a__",
                           "__a",
                           "a__B",
                           "shop___nothing",
                           "_R",
                           "_start",
                           "_ada_",
                           "work.constprop.0",
                           "main.work",
                           "sqlite3_open",
                           "a__b__"}) {
    CAPTURE(std::string(name));
    CHECK(decode(name).language == Language::kNone);
  }
}

TEST_CASE("languages: a name that does not fit has none") {
  const std::string part(30'000, 'x');
  CHECK(decode("__" + part + "_MOD_" + part).language == Language::kFortran);
  CHECK(decode("__" + part + part + "_MOD_" + part).language == Language::kNone);
}

TEST_CASE("languages: OCaml's numbers are cut off, those of other names are not") {
  CHECK(without_ocaml_number("Stdlib.List.map_331") == "Stdlib.List.map");
  for (const char* name : {"work_1", "Work_1", "shop.serve_2", "Shop.f(int)_1",
                           "Shop::a.f_1", "Shop.f_", "Shop.f1", "_1", ""}) {
    CAPTURE(std::string(name));
    CHECK(without_ocaml_number(name) == name);
  }
}

}  // namespace arctrace
