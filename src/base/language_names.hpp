// Names of functions as languages other than C++ write them, from the names that their
// compilers give to linkers:
//
//   Rust     _RNvNtCs1234_2ab5inner7descend     ab::inner::descend
//            _ZN2ab5inner7descend17h7481...E    ab::inner::descend
//   D        _D3app4Desk5serveMFiZv             app.Desk.serve
//   OCaml    camlStdlib__List__map_331          Stdlib.List.map_331
//   Fortran  __shapes_MOD_area                  shapes::area
//   Ada      shop__desk__serve__2               shop.desk.serve
//
// The shim and the command match patterns against these, beside the linker's names, and
// reports show them. C++ names need a demangler, which is a library's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace arctrace {

enum class Language : uint8_t {
  kNone,  // no such name: C, C++, or not known
  kRust,
  kD,  // without template arguments and parameters; names with the former are kNone
  kOcaml,
  kFortran,  // a procedure of a module
  kAda,      // of Ada's own packages, or a main procedure
  // C functions may have names like this one, too: reports show it as Ada's only if the
  // module is a program of Ada's.
  kPerhapsAda,
};

// The most bytes of a name that is written. A name that would take more has no language.
inline constexpr size_t kDecodedNameMax = 64 << 10;

struct DecodedName {
  Language language = Language::kNone;
  size_t size = 0;  // bytes of the name as reports show it
  // Bytes without the suffix of a copy (" [clone .part.0]"), or the number that OCaml
  // appends ("_331"). Patterns match without these, too.
  size_t plain_size = 0;
};

// Whether the linker's name may be one of these languages'. Most are not, and take only a
// glance.
constexpr bool may_be_decoded(std::string_view name) {
  const auto begins = [name](std::string_view with) {
    if (name.size() < with.size()) return false;
    for (size_t i = 0; i < with.size(); ++i) {
      if (name[i] != with[i]) return false;
    }
    return true;
  };
  if (begins({"_R", 2}) || begins({"_D", 2}) || begins({"_ada_", 5}) ||
      begins({"caml", 4})) {
    return true;
  }
  const bool is_nested = begins({"_ZN", 3});  // a name of C++, or of Rust with a hash
  for (size_t i = 0; i + 2 < name.size(); ++i) {
    if (is_nested ? name[i] == '1' && name[i + 1] == '7' && name[i + 2] == 'h'
                  : name[i] == '_' && name[i + 1] == '_') {
      return true;
    }
  }
  return false;
}

// Writes the name of the function that the linker calls `name` to `bytes`, of which there
// are `capacity`. `name` may be anything; no libc is used.
DecodedName decode_name(std::string_view name, char* bytes, size_t capacity);

// The function by which gnatbind has a program's packages prepared: reports show names as
// Ada's in a module that has it.
inline constexpr std::string_view kAdaInit = "adainit";

// The number that OCaml appends to a name ("_331") is cut off. OCaml's modules begin with
// a capital, and no other names that reports show have one and dots, but no parameters.
constexpr std::string_view without_ocaml_number(std::string_view name) {
  size_t end = name.size();
  while (end != 0 && '0' <= name[end - 1] && name[end - 1] <= '9') --end;
  if (end == name.size() || end < 2 || name[end - 1] != '_') return name;
  if (name[0] < 'A' || 'Z' < name[0]) return name;
  bool has_dot = false;
  for (const char c : name) {
    if (c == '(' || c == ':' || c == ' ') return name;
    if (c == '.') has_dot = true;
  }
  return has_dot ? std::string_view(name.data(), end - 1) : name;
}

}  // namespace arctrace
