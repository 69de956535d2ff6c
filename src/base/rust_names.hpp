// Names of Rust's functions. rustc has two encodings of them: the legacy one, which looks
// like C++ and ends with a hash ("_ZN2ab5inner7descend17h74816575676c7c74E"), and v0
// ("_RNvNtCs1234_2ab5inner7descend"). Both become "ab::inner::descend", as libiberty,
// rustc-demangle and perf have it. The shim matches patterns against the same text that
// reports show, and a Rust program has no demangler that the shim could call; so both
// use this one.
#pragma once

#include <string_view>

#include "src/base/decoded_text.hpp"

namespace arctrace {

// Writes the name without its hash. Returns false, and the text is of no use, if it is no
// name of Rust's in the legacy encoding. `name` may be anything.
bool decode_legacy_rust(std::string_view name, DecodedText& text);

// Writes the name without the crate's hashes. Returns false, and the text is of no use,
// if it is no name in the encoding v0, or if it takes unreasonable work. `name` may be
// anything.
bool decode_rust_v0(std::string_view name, DecodedText& text);

// Writes an identifier of which `plain` has the characters of ASCII, and `code` the
// others and where they stand. Returns false if it is wrong, or has more than 128
// characters.
bool put_punycode(std::string_view plain, std::string_view code, DecodedText& text);

}  // namespace arctrace
