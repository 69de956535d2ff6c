// Decodes names of OCaml, Fortran, D and Ada, and tells whose a name is.
#include "src/base/language_names.hpp"

#include "src/base/decoded_text.hpp"
#include "src/base/rust_names.hpp"

namespace arctrace {
namespace {

constexpr bool is_identifier(char c) {
  return is_lower(c) || is_upper(c) || is_digit(c) || c == '_';
}

// As perf decodes them: "__" stands for ".", and "$2b" for the character 0x2b.
bool decode_ocaml(std::string_view name, DecodedText& text) {
  constexpr std::string_view kBegin = "caml";
  if (!has_at(name, 0, kBegin) || name.size() < 6 || !is_upper(name[4])) return false;
  bool has_module = false;
  for (size_t i = kBegin.size(); i < name.size(); ++i) {
    if (has_at(name, i, "__") && i + 2 < name.size()) {
      text.put('.');
      has_module = true;
      ++i;
    } else if (name[i] == '$' && i + 2 < name.size() && hex_value(name[i + 1]) >= 0 &&
               hex_value(name[i + 2]) >= 0) {
      text.put(static_cast<char>(hex_value(name[i + 1]) * 16 + hex_value(name[i + 2])));
      i += 2;
    } else {
      has_module |= name[i] == '.';  // OCaml 5.1 separates by dots
      text.put(name[i]);
    }
  }
  return has_module;
}

// As gdb shows procedures of gfortran's modules.
bool decode_fortran(std::string_view name, DecodedText& text) {
  constexpr std::string_view kMark = "_MOD_";
  if (!has_at(name, 0, "__") || name.size() < 3 || !is_lower(name[2])) return false;
  size_t mark = 3;
  while (mark < name.size() && !has_at(name, mark, kMark)) ++mark;
  if (mark + kMark.size() >= name.size()) return false;
  for (const char c : name) {
    if (!is_identifier(c)) return false;
  }
  text.put({name.data() + 2, mark - 2});
  text.put("::");
  text.put(text_from(name, mark + kMark.size()));
  return true;
}

// "_D", then identifiers, each after its length, and the encoding of a type. A template's
// instance begins with "__T" or "__U", an identifier that stands in the name already with
// "Q".
bool decode_d(std::string_view name, DecodedText& text) {
  constexpr std::string_view kMain = "_Dmain";
  if (has_at(name, 0, kMain) && name.size() == kMain.size()) {
    text.put("D main");
    return true;
  }
  if (!has_at(name, 0, "_D") || name.size() < 4 || !is_digit(name[2])) return false;
  size_t at = 2;
  while (at < name.size() && is_digit(name[at])) {
    size_t size = 0;
    while (at < name.size() && is_digit(name[at]) && size < name.size()) {
      size = size * 10 + static_cast<size_t>(name[at++] - '0');
    }
    if (size == 0 || size > name.size() - at || has_at(name, at, "__T") ||
        has_at(name, at, "__U")) {
      return false;
    }
    if (text.size() != 0) text.put('.');
    text.put({name.data() + at, size});
    at += size;
  }
  return at < name.size() && (is_upper(name[at]) || is_lower(name[at])) &&
         name[at] != 'Q' && name[at] != 'S';
}

struct Operator {
  std::string_view code, text;
};
constexpr Operator kAdaOperators[] = {
    {"Oabs", "\"abs\""},  {"Oand", "\"and\""},    {"Omod", "\"mod\""},
    {"Onot", "\"not\""},  {"Oor", "\"or\""},      {"Orem", "\"rem\""},
    {"Oxor", "\"xor\""},  {"Oeq", "\"=\""},       {"One", "\"/=\""},
    {"Olt", "\"<\""},     {"Ole", "\"<=\""},      {"Ogt", "\">\""},
    {"Oge", "\">=\""},    {"Oadd", "\"+\""},      {"Osubtract", "\"-\""},
    {"Oconcat", "\"&\""}, {"Omultiply", "\"*\""}, {"Odivide", "\"/\""},
    {"Oexpon", "\"**\""}};
constexpr Operator kAdaSpecials[] = {{"___elabb", "'Elab_Body"},
                                     {"___elabs", "'Elab_Spec"},
                                     {"___size", "'Size"},
                                     {"___alignment", "'Alignment"},
                                     {"___assign", ".\":=\""}};
// What a name ends with, but for a number of overloading.
constexpr Operator kAdaOperations[] = {{"SR", "'Read"},     {"SW", "'Write"},
                                       {"SI", "'Input"},    {"SO", "'Output"},
                                       {"DF", ".Finalize"}, {"DA", ".Adjust"}};

// GNAT's names, which libiberty and gdb decode in the same way: the packages and the
// subprogram, in lower case, separated by "__", then what tells overloaded ones apart, or
// what the compiler has made of them.
class AdaParser {
 public:
  AdaParser(std::string_view name, DecodedText& text) : name_(name), text_(text) {}

  bool parse() {
    for (;;) {
      if (!entity()) return false;
      switch (after_entity()) {
        case Next::kEntity:
          text_.put('.');
          continue;
        case Next::kEnd:
          return true;
        case Next::kNothing:
          return false;
      }
    }
  }

 private:
  enum class Next : uint8_t { kEntity, kEnd, kNothing };

  char peek(size_t offset = 0) const {
    return offset < name_.size() - at_ ? name_[at_ + offset] : '\0';
  }
  void skip_digits() {
    while (is_digit(peek())) ++at_;
  }
  // The body stands within another one.
  void skip_nesting() {
    if (peek() != 'X') return;
    ++at_;
    while (peek() == 'n' || peek() == 'b') ++at_;
  }
  // Which one of overloaded subprograms it is.
  void skip_number() {
    if (!has_at(name_, at_, "__") || !is_digit(peek(2))) return;
    at_ += 2;
    while (is_digit(peek()) || (peek() == '_' && is_digit(peek(1)))) ++at_;
    skip_nesting();
  }
  template <size_t kCount>
  void put_any(const Operator (&table)[kCount]) {
    for (const Operator& one : table) {
      if (!has_at(name_, at_, one.code)) continue;
      text_.put(one.text);
      at_ += one.code.size();
      return;
    }
  }

  bool entity() {
    for (const Operator& one : kAdaOperators) {
      const size_t end = at_ + one.code.size();
      if (!has_at(name_, at_, one.code) || (end < name_.size() && is_lower(name_[end]))) {
        continue;
      }
      text_.put(one.text);
      at_ = end;
      return true;
    }
    if (!is_lower(peek())) return false;
    while (is_lower(peek()) || is_digit(peek()) ||
           (peek() == '_' && (is_lower(peek(1)) || is_digit(peek(1))))) {
      text_.put(name_[at_++]);
    }
    return true;
  }

  Next after_entity() {
    if (has_at(name_, at_, "TK")) {  // of a task
      at_ += 2;
      if (peek() == 'B' && peek(1) == '\0') return Next::kEnd;
      if (!has_at(name_, at_, "__")) return Next::kNothing;
      at_ += 2;
      return Next::kEntity;
    }
    if ((peek() == 'P' || peek() == 'N') && peek(1) == '\0') return Next::kEnd;
    if (has_at(name_, at_, "_B") || has_at(name_, at_, "_E")) {  // of an entry
      at_ += 2;
      skip_digits();
      return peek() == 's' && peek(1) == '\0' ? Next::kEnd : Next::kNothing;
    }
    skip_nesting();
    put_any(kAdaOperations);
    put_any(kAdaSpecials);
    skip_nesting();
    skip_number();
    if (peek() == '.' && is_digit(peek(1))) {  // a subprogram within another one
      ++at_;
      skip_digits();
    }
    if (at_ == name_.size()) return Next::kEnd;
    if (!has_at(name_, at_, "__") || !is_lower_or_operator(peek(2)))
      return Next::kNothing;
    at_ += 2;
    return Next::kEntity;
  }

  static bool is_lower_or_operator(char c) { return is_lower(c) || c == 'O'; }

  const std::string_view name_;
  DecodedText& text_;
  size_t at_ = 0;
};

Language decode_ada(std::string_view name, DecodedText& text) {
  constexpr std::string_view kMain = "_ada_";
  constexpr std::string_view kPackages[] = {"ada__", "gnat__", "interfaces__",
                                            "system__"};
  if (has_at(name, 0, kMain)) {
    return AdaParser(text_from(name, kMain.size()), text).parse() ? Language::kAda
                                                                  : Language::kNone;
  }
  bool has_package = false;
  for (size_t i = 0; i < name.size() && !has_package; ++i) {
    has_package = has_at(name, i, "__");
  }
  if (!has_package || !AdaParser(name, text).parse()) return Language::kNone;
  for (const std::string_view package : kPackages) {
    if (has_at(name, 0, package)) return Language::kAda;
  }
  return Language::kPerhapsAda;
}

// The name up to the suffix of a copy that the compiler made (".part.0").
std::string_view without_suffix(std::string_view name) {
  size_t size = 0;
  while (size < name.size() && name[size] != '.') ++size;
  return {name.data(), size};
}

using Decoder = bool(std::string_view name, DecodedText& text);

// Decodes with a decoder that is to see the name without a copy's suffix, which follows
// the text as it follows C++ names.
DecodedName decode_copy(std::string_view name, std::string_view base, Language language,
                        DecodedText& text) {
  const size_t plain_size = text.size();
  if (base.size() != name.size() && !has_at(name, base.size(), ".llvm.")) {
    text.put(" [clone ");
    text.put(text_from(name, base.size()));
    text.put(']');
  }
  if (text.is_too_long()) return {};
  return {language, text.size(), plain_size};
}

}  // namespace

DecodedName decode_name(std::string_view name, char* bytes, size_t capacity) {
  DecodedText whole(bytes, capacity);
  if (decode_legacy_rust(name, whole)) {
    return {Language::kRust, whole.size(), whole.size()};
  }
  DecodedText ocaml(bytes, capacity);
  if (decode_ocaml(name, ocaml) && !ocaml.is_too_long()) {
    const std::string_view shown(bytes, ocaml.size());
    return {Language::kOcaml, shown.size(), without_ocaml_number(shown).size()};
  }
  const std::string_view base = without_suffix(name);
  const struct {
    Language language;
    Decoder* decode;
  } kDecoders[] = {{Language::kRust, decode_rust_v0},
                   {Language::kFortran, decode_fortran},
                   {Language::kD, decode_d}};
  for (const auto& [language, decode] : kDecoders) {
    DecodedText text(bytes, capacity);
    if (decode(base, text)) return decode_copy(name, base, language, text);
  }
  DecodedText ada(bytes, capacity);
  if (const Language language = decode_ada(name, ada); language != Language::kNone) {
    if (ada.is_too_long()) return {};
    return {language, ada.size(), ada.size()};
  }
  // The copies of a subprogram are its compiler's: ".cold", ".part.0".
  DecodedText copy(bytes, capacity);
  const Language language = decode_ada(base, copy);
  return language == Language::kNone ? DecodedName{}
                                     : decode_copy(name, base, language, copy);
}

}  // namespace arctrace
