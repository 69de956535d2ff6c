// Names of functions as their languages write them, from the names that their compilers
// give to linkers. Any bytes may be given: time, memory and stack are bounded.
#pragma once

#include <string>
#include <string_view>

#include "src/base/language_names.hpp"

namespace arctrace::reader {

// Whether names that C functions may have, too, are shown as Ada's.
enum class ShowsAda : bool { kNo, kYes };

// Demangles names of C++, Rust, D, OCaml, Fortran and Ada. Returns the demangled form of
// a linker's name, of C++ and D with all its template arguments and parameters, or `name`
// itself if it is not mangled, or if its demangled form has more than 64 KiB or takes
// unreasonable work: a name of 200 bytes can stand for gigabytes, because each back
// reference may double what stands before it.
std::string demangle_untrusted(const std::string& name, ShowsAda ada = ShowsAda::kNo);

// The name of a language that needs no library (src/base/language_names.hpp).
struct LanguageName {
  Language language = Language::kNone;
  std::string shown;
  std::string plain;  // without what patterns need not have
};
LanguageName language_name_untrusted(std::string_view name);

}  // namespace arctrace::reader
