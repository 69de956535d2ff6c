#include "reader/symbols/demangle.hpp"

// Keeps libiberty from declaring a basename() that differs from glibc's.
#define HAVE_DECL_BASENAME 1
#include <libiberty/demangle.h>

#include <cstddef>

// abi::__cxa_demangle is this same code, but returns the text only when it is complete,
// so that its time and memory cannot be bounded. Here the text comes in pieces, and one
// piece too many stops the work.

namespace arctrace::reader {
namespace {

// The longest demangled name in LLVM, GCC, OpenJDK and Debian's C++ libraries has 8,367
// bytes.
constexpr size_t kTextBytesMax = 64 << 10;

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

}  // namespace

std::string demangle_untrusted(const std::string& name) {
  if (!name.starts_with("_Z")) return name;
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

}  // namespace arctrace::reader
