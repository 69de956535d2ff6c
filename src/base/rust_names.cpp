// Decodes names of Rust's functions: the legacy encoding, and v0, whose grammar is that
// of https://doc.rust-lang.org/rustc/symbol-mangling/v0.html. The functions of v0's
// parser have the names of its productions.
#include "src/base/rust_names.hpp"

namespace arctrace {
namespace {

// ---- The legacy encoding ----------------------------------------------------------

constexpr size_t kHashSize = 17;  // "h" and 16 digits

// Other names could end like a hash, but hardly with five different digits.
bool is_hash(std::string_view part) {
  if (part.size() != kHashSize || part[0] != 'h') return false;
  constexpr uint32_t kDifferent = 5;
  uint32_t seen = 0;
  // The digits are counted one by one, because the function of libgcc that counts bits
  // has vector instructions on aarch64.
  uint32_t different = 0;
  for (const char c : text_from(part, 1)) {
    const int value = hex_value(c);
    if (value < 0) return false;
    const uint32_t digit = uint32_t{1} << value;
    if ((seen & digit) == 0) ++different;
    seen |= digit;
  }
  return different >= kDifferent;
}

// Reads a decimal number and as many bytes after it. Returns false if there are none.
bool read_part(std::string_view name, size_t& at, std::string_view& part) {
  size_t size = 0;
  const size_t begin = at;
  while (at < name.size() && is_digit(name[at]) && size < name.size()) {
    size = size * 10 + static_cast<size_t>(name[at++] - '0');
  }
  if (at == begin || size == 0 || size > name.size() - at) return false;
  part = {name.data() + at, size};
  at += size;
  return true;
}

struct Escape {
  std::string_view code;
  char character;
};
constexpr Escape kEscapes[] = {{"$SP$", '@'}, {"$BP$", '*'}, {"$RF$", '&'}, {"$LT$", '<'},
                               {"$GT$", '>'}, {"$LP$", '('}, {"$RP$", ')'}, {"$C$", ','}};

// Puts the character of the escape sequence at `at`. Returns the sequence's size; 0:
// there is none.
size_t put_escape(std::string_view part, size_t at, DecodedText& text) {
  for (const Escape& escape : kEscapes) {
    if (!has_at(part, at, escape.code)) continue;
    text.put(escape.character);
    return escape.code.size();
  }
  if (!has_at(part, at, "$u")) return 0;
  uint32_t value = 0;
  size_t i = at + 2;
  for (; i < part.size() && hex_value(part[i]) >= 0 && i < at + 8; ++i) {
    value = value * 16 + static_cast<uint32_t>(hex_value(part[i]));
  }
  if (i == at + 2 || !has_at(part, i, "$") || value < ' ' || value >= 0x7F) return 0;
  text.put(static_cast<char>(value));
  return i + 1 - at;
}

void put_part(std::string_view part, DecodedText& text) {
  // An underscore protects a "$" that would be the first character.
  size_t i = has_at(part, 0, "_$") ? 1 : 0;
  while (i < part.size()) {
    if (has_at(part, i, "..")) {
      text.put("::");
      i += 2;
    } else if (part[i] == '.') {
      text.put('-');
      ++i;
    } else if (part[i] != '$') {
      text.put(part[i++]);
    } else if (const size_t size = put_escape(part, i, text); size != 0) {
      i += size;
    } else {
      text.put(text_from(part, i));
      return;
    }
  }
}

}  // namespace

bool decode_legacy_rust(std::string_view name, DecodedText& text) {
  constexpr std::string_view kBegin = "_ZN";
  if (!has_at(name, 0, kBegin)) return false;
  size_t at = kBegin.size();
  std::string_view part;
  for (size_t count = 0; read_part(name, at, part); ++count) {
    if (has_at(name, at, "E") && is_hash(part)) {
      const bool ends_here = at + 1 == name.size() || name[at + 1] == '.';
      return ends_here && count != 0 && !text.is_too_long();
    }
    if (count != 0) text.put("::");
    put_part(part, text);
  }
  return false;
}

// ---- Punycode ---------------------------------------------------------------------

// RFC 3492.
bool put_punycode(std::string_view plain, std::string_view code, DecodedText& text) {
  constexpr size_t kCharactersMax = 128;
  uint32_t characters[kCharactersMax];
  size_t count = 0;
  if (plain.size() > kCharactersMax) return false;
  for (const char c : plain) characters[count++] = static_cast<unsigned char>(c);
  uint64_t bias = 72;
  uint64_t value = 0x80;
  uint64_t position = 0;
  uint64_t damp = 700;
  for (size_t i = 0; i < code.size();) {
    uint64_t delta = 0;
    uint64_t weight = 1;
    for (uint64_t k = 36;; k += 36) {
      if (i == code.size()) return false;
      const char c = code[i++];
      if (!is_lower(c) && !is_digit(c)) return false;
      const auto digit = static_cast<uint64_t>(is_lower(c) ? c - 'a' : c - '0' + 26);
      delta += digit * weight;
      if (delta > UINT32_MAX) return false;
      const uint64_t threshold = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
      if (digit < threshold) break;
      weight *= 36 - threshold;
    }
    if (count == kCharactersMax) return false;
    position += delta;
    ++count;
    value += position / count;
    position %= count;
    if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) return false;
    for (size_t j = count - 1; j > position; --j) characters[j] = characters[j - 1];
    characters[position++] = static_cast<uint32_t>(value);
    delta /= damp;
    damp = 2;
    delta += delta / count;
    bias = 0;
    for (; delta > 35 * 26 / 2; delta /= 35) bias += 36;
    bias += 36 * delta / (delta + 38);
  }
  for (size_t i = 0; i < count; ++i) text.put_utf8(characters[i]);
  return true;
}

}  // namespace arctrace
