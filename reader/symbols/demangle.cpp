// Demangles C++ and D by libiberty, with bounds on what it does, and other languages by
// src/base.
#include "reader/symbols/demangle.hpp"

// Keeps libiberty from declaring a basename() that differs from glibc's.
#define HAVE_DECL_BASENAME 1
#include <libiberty/demangle.h>

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace arctrace::reader {
namespace {

// ---- C++ --------------------------------------------------------------------------

// abi::__cxa_demangle is this same code, but returns the text only when it is complete,
// so that its time and memory cannot be bounded. Here the text comes in pieces, and one
// piece too many stops the work.

// The longest demangled name in LLVM, GCC, OpenJDK and Debian's C++ libraries has 8,367
// bytes.
constexpr size_t kTextBytesMax = kDecodedNameMax;

// For each pack expansion the demangler searches the pattern for its pack, and follows
// back references without producing text: at most 3^(n/3) visits for n references, which
// for 36 is about half a million. The most in any real name with a pack is 17.
constexpr size_t kPackReferencesMax = 36;

struct TextTooLong {};

extern "C" void append_text(const char* piece, size_t size, void* text) {
  auto& all = *static_cast<std::string*>(text);
  if (size > kTextBytesMax - all.size()) throw TextTooLong();
  all.append(piece, size);
}

bool has_pack(const std::string& name) {
  for (const char* mark : {"Dp", "sp", "sZ", "sP"}) {
    if (name.find(mark) != std::string::npos) return true;
  }
  return false;
}

// Counts S_, S0_, SA1_ and so on. Text within identifiers may be counted too, which does
// no harm.
size_t count_back_references(const std::string& name) {
  size_t count = 0;
  for (size_t at = name.find('S'); at != std::string::npos; at = name.find('S', at + 1)) {
    const size_t end = name.find_first_not_of("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", at);
    if (end != std::string::npos && name[end] == '_') ++count;
  }
  return count;
}

std::string demangle_cpp_untrusted(const std::string& name) {
  if (has_pack(name) && count_back_references(name) > kPackReferencesMax) return name;
  std::string text;
  try {
    // The exception passes through frames of the demangler, which own nothing and can be
    // unwound (the ABI demands unwind tables of C code too). Without
    // DMGL_NO_RECURSE_LIMIT its use of the stack is bounded.
    const int done = cplus_demangle_v3_callback(name.c_str(), DMGL_PARAMS | DMGL_TYPES,
                                                append_text, &text);
    return done != 0 ? text : name;
  } catch (const TextTooLong&) {
    return name;
  }
}

// ---- D ----------------------------------------------------------------------------

// libiberty hands out a name of D only when it is complete, and its recursion is as deep
// as the name is long, for each back reference once more. Names of D have back references
// since 2018, so that longer ones are rare.
constexpr size_t kDNameBytesMax = 1024;

// At most 3^(n/3) visits for n back references to types, each of which puts no more than
// the name has bytes.
constexpr size_t kDTypeReferencesMax = 24;

// Where a template's argument is a symbol, older compilers put its length before the
// length of its first identifier. libiberty tries where the first ends, and in each try
// parses what follows, which may have such an argument again.
constexpr size_t kDTriesMax = 1 << 16;

bool is_digit(char c) { return '0' <= c && c <= '9'; }

// Counts "Q", after which letters say how far back it leads, unless it leads to an
// identifier. Text within identifiers may be counted too, which does no harm.
size_t count_d_type_references(const std::string& name) {
  size_t count = 0;
  for (size_t at = name.find('Q'); at != std::string::npos; at = name.find('Q', at + 1)) {
    size_t back = 0;
    size_t i = at + 1;
    while (i < name.size() && 'A' <= name[i] && name[i] <= 'Z' && back <= name.size()) {
      back = back * 26 + static_cast<size_t>(name[i++] - 'A');
    }
    if (i == name.size() || name[i] < 'a' || 'z' < name[i]) continue;
    back = back * 26 + static_cast<size_t>(name[i] - 'a');
    if (back <= at && !is_digit(name[at - back])) ++count;
  }
  return count;
}

// How many ways there are at most to divide the numbers of a template's symbols.
size_t count_d_tries(const std::string& name) {
  size_t tries = 1;
  for (size_t at = name.find('S'); at != std::string::npos; at = name.find('S', at + 1)) {
    size_t digits = 0;
    while (at + 1 + digits < name.size() && is_digit(name[at + 1 + digits])) ++digits;
    if (digits > 1) tries *= digits;
    if (tries > kDTriesMax) break;
  }
  return tries;
}

// Empty: it is no name of D, or one that may take unreasonable work.
std::string demangle_d_untrusted(const std::string& name) {
  if (name.size() > kDNameBytesMax ||
      count_d_type_references(name) > kDTypeReferencesMax ||
      count_d_tries(name) > kDTriesMax) {
    return {};
  }
  const std::unique_ptr<char, decltype(&std::free)> text(
      dlang_demangle(name.c_str(), DMGL_PARAMS), &std::free);
  std::string shown = text == nullptr ? "" : text.get();
  return shown.size() > kTextBytesMax ? "" : shown;
}

}  // namespace

LanguageName language_name_untrusted(std::string_view name) {
  if (!may_be_decoded(name)) return {};
  const auto bytes = std::make_unique_for_overwrite<char[]>(kDecodedNameMax);
  const DecodedName decoded = decode_name(name, bytes.get(), kDecodedNameMax);
  return {decoded.language, std::string(bytes.get(), decoded.size),
          std::string(bytes.get(), decoded.plain_size)};
}

std::string demangle_untrusted(const std::string& name, ShowsAda ada) {
  const LanguageName other = language_name_untrusted(name);
  switch (other.language) {
    case Language::kRust:
    case Language::kOcaml:
    case Language::kFortran:
    case Language::kAda:
      return other.shown;
    case Language::kPerhapsAda:
      return ada == ShowsAda::kYes ? other.shown : name;
    case Language::kD:
    case Language::kNone:
      break;
  }
  if (name.starts_with("_Z")) return demangle_cpp_untrusted(name);
  if (!name.starts_with("_D")) return name;
  std::string shown = demangle_d_untrusted(name);
  if (!shown.empty()) return shown;
  return other.language == Language::kD ? other.shown : name;
}

}  // namespace arctrace::reader
