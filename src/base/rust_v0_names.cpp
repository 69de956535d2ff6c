// Decodes the encoding v0 of Rust's names. The functions of the parser have the names of
// the productions in https://doc.rust-lang.org/rustc/symbol-mangling/v0.html.
#include "src/base/rust_names.hpp"

namespace arctrace {
namespace {

// Bounds for names that are made to do harm: of the stack, and of the time.
constexpr unsigned kDepthMax = 200;
constexpr unsigned kStepsMax = 100'000;

constexpr std::string_view basic_type(char tag) {
  constexpr std::string_view kTypes[] = {
      "i8",    "bool", "char", "f64", "str",  "f32",  "",    "u8", "isize",
      "usize", "",     "i32",  "u32", "i128", "u128", "_",   "",   "",
      "i16",   "u16",  "()",   "...", "",     "i64",  "u64", "!"};
  return is_lower(tag) ? kTypes[tag - 'a'] : std::string_view();
}

class Parser {
 public:
  Parser(std::string_view name, DecodedText& text) : name_(name), text_(text) {}

  // Parses the whole name: a path, and perhaps the crate that instantiates it.
  bool parse() {
    path(true);
    if (at_ < name_.size()) {
      is_silent_ = true;
      path(false);
    }
    return !failed_ && at_ == name_.size() && !text_.is_too_long();
  }

 private:
  struct Identifier {
    std::string_view plain, punycode;
    bool empty() const { return plain.empty() && punycode.empty(); }
  };

  // Counts the depth of the recursion, and how often anything is entered.
  class Level {
   public:
    explicit Level(Parser& parser) : parser_(parser) {
      if (++parser.depth_ > kDepthMax || ++parser.steps_ > kStepsMax) parser.fail();
    }
    ~Level() { --parser_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Parser& parser_;
  };

  void fail() { failed_ = true; }
  bool goes_on() const { return !failed_ && !text_.is_too_long(); }
  char peek() const { return at_ < name_.size() ? name_[at_] : '\0'; }
  char next() {
    if (at_ < name_.size()) return name_[at_++];
    fail();
    return '\0';
  }
  bool eat(char c) {
    if (failed_ || peek() != c) return false;
    ++at_;
    return true;
  }
  void put(char c) {
    if (goes_on() && !is_silent_) text_.put(c);
  }
  void put(std::string_view text) {
    if (goes_on() && !is_silent_) text_.put(text);
  }
  template <size_t kSize>
  void put(const char (&text)[kSize]) {
    put(std::string_view(text, kSize - 1));
  }
  void put_number(uint64_t number) {
    if (goes_on() && !is_silent_) text_.put_number(number);
  }

  // Entries up to an "E", with a separator between them. Returns how many.
  template <size_t kSize, class Entry>
  size_t list(const char (&separator)[kSize], Entry entry) {
    size_t count = 0;
    while (goes_on() && !eat('E')) {
      if (count++ != 0) put(separator);
      entry();
    }
    return count;
  }

  uint64_t base_62_number() {
    if (eat('_')) return 0;
    uint64_t value = 0;
    while (goes_on() && !eat('_')) {
      const char c = next();
      uint64_t digit = 0;
      if (is_digit(c)) {
        digit = static_cast<uint64_t>(c - '0');
      } else if (is_lower(c)) {
        digit = static_cast<uint64_t>(c - 'a') + 10;
      } else if (is_upper(c)) {
        digit = static_cast<uint64_t>(c - 'A') + 36;
      } else {
        fail();
      }
      if (value > (UINT64_MAX - 62) / 62) fail();
      value = value * 62 + digit;
    }
    return value + 1;
  }
  uint64_t optional_base_62_number(char tag) {
    return eat(tag) ? base_62_number() + 1 : 0;
  }
  uint64_t disambiguator() { return optional_base_62_number('s'); }

  // Parses what stands at an earlier position, if its text is wanted.
  template <class Part>
  void backref(Part part) {
    const size_t tag = at_ - 1;
    const uint64_t target = base_62_number();
    if (target >= tag) fail();
    if (!goes_on() || is_silent_) return;
    const size_t back = at_;
    at_ = target;
    part();
    at_ = back;
  }

  Identifier identifier() {
    const bool is_punycode = eat('u');
    const char first = next();
    if (!is_digit(first)) fail();
    size_t size = static_cast<size_t>(first - '0');
    while (goes_on() && first != '0' && is_digit(peek()) && size < name_.size()) {
      size = size * 10 + static_cast<size_t>(next() - '0');
    }
    eat('_');
    if (!goes_on() || size > name_.size() - at_) {
      fail();
      return {};
    }
    const std::string_view bytes(name_.data() + at_, size);
    at_ += size;
    if (!is_punycode) return {bytes, {}};
    size_t begin = size;
    while (begin != 0 && bytes[begin - 1] != '_') --begin;
    if (begin == size) fail();
    return {{bytes.data(), begin == 0 ? 0 : begin - 1}, text_from(bytes, begin)};
  }

  void put(const Identifier& identifier) {
    if (!goes_on() || is_silent_) return;
    if (identifier.punycode.empty()) {
      put(identifier.plain);
    } else if (!put_punycode(identifier.plain, identifier.punycode, text_)) {
      fail();
    }
  }

  // `in_value`: the path is of a value, in which generic arguments follow "::".
  void path(bool in_value) {
    const Level level(*this);
    if (!goes_on()) return;
    switch (const char tag = next(); tag) {
      case 'C':
        disambiguator();
        return put(identifier());
      case 'N':
        return nested_path(in_value);
      case 'M':
      case 'X':
        impl_path();
        return implemented(tag);
      case 'Y':
        return implemented(tag);
      case 'I':
        path(in_value);
        if (in_value) put("::");
        put('<');
        list(", ", [this] { generic_arg(); });
        return put('>');
      case 'B':
        return backref([&] { path(in_value); });
      default:
        fail();
    }
  }

  void nested_path(bool in_value) {
    const char space = next();
    if (!is_lower(space) && !is_upper(space)) fail();
    path(in_value);
    const uint64_t number = disambiguator();
    const Identifier name = identifier();
    if (is_lower(space)) {
      if (!name.empty()) put("::");
      return put(name);
    }
    put("::{");
    if (space == 'C') {
      put("closure");
    } else if (space == 'S') {
      put("shim");
    } else {
      put(space);
    }
    if (!name.empty()) put(':');
    put(name);
    put('#');
    put_number(number);
    put('}');
  }

  // Where an implementation stands is not shown.
  void impl_path() {
    const bool was_silent = is_silent_;
    is_silent_ = true;
    disambiguator();
    path(false);
    is_silent_ = was_silent;
  }

  // "<Type as Trait>", or only the type.
  void implemented(char tag) {
    put('<');
    type();
    if (tag != 'M') {
      put(" as ");
      path(false);
    }
    put('>');
  }

  void generic_arg() {
    if (eat('L')) {
      lifetime(base_62_number());
    } else if (eat('K')) {
      constant();
    } else {
      type();
    }
  }

  void lifetime(uint64_t index) {
    put('\'');
    if (index == 0) return put('_');
    if (index > lifetimes_) return fail();
    const uint64_t depth = lifetimes_ - index;
    if (depth < 26) return put(static_cast<char>('a' + depth));
    put('_');
    put_number(depth);
  }

  // Parses what `part` does within the lifetimes that a binder introduces.
  template <class Part>
  void bound(Part part) {
    const uint64_t outer = lifetimes_;
    const uint64_t count = optional_base_62_number('G');
    if (count > name_.size()) fail();
    if (count != 0) put("for<");
    for (uint64_t i = 0; i < count && goes_on(); ++i) {
      if (i != 0) put(", ");
      ++lifetimes_;
      lifetime(1);
    }
    if (count != 0) put("> ");
    part();
    lifetimes_ = outer;
  }

  void type() {
    const Level level(*this);
    if (!goes_on()) return;
    const char tag = next();
    if (const std::string_view basic = basic_type(tag); !basic.empty()) return put(basic);
    switch (tag) {
      case 'R':
      case 'Q':
        return reference(tag == 'Q');
      case 'P':
        put("*const ");
        return type();
      case 'O':
        put("*mut ");
        return type();
      case 'A':
      case 'S':
        put('[');
        type();
        if (tag == 'A') {
          put("; ");
          constant();
        }
        return put(']');
      case 'T': {
        put('(');
        if (list(", ", [this] { type(); }) == 1) put(',');
        return put(')');
      }
      case 'F':
        return bound([this] { function_type(); });
      case 'D':
        put("dyn ");
        bound([this] { list(" + ", [this] { dyn_trait(); }); });
        if (!eat('L')) return fail();
        if (const uint64_t index = base_62_number(); index != 0) {
          put(" + ");
          lifetime(index);
        }
        return;
      case 'B':
        return backref([this] { type(); });
      default:
        if (!failed_) --at_;  // `tag` begins a path
        path(false);
    }
  }

  void reference(bool is_mutable) {
    put('&');
    if (eat('L')) {
      if (const uint64_t index = base_62_number(); index != 0) {
        lifetime(index);
        put(' ');
      }
    }
    if (is_mutable) put("mut ");
    type();
  }

  void function_type() {
    if (eat('U')) put("unsafe ");
    if (eat('K')) {
      put("extern \"");
      if (eat('C')) {
        put('C');
      } else {
        const Identifier abi = identifier();
        if (abi.plain.empty() || !abi.punycode.empty()) fail();
        for (const char c : abi.plain) put(c == '_' ? '-' : c);
      }
      put("\" ");
    }
    put("fn(");
    list(", ", [this] { type(); });
    put(')');
    if (eat('u')) return;
    put(" -> ");
    type();
  }

  // A trait, with what its associated types are among its generic arguments.
  void dyn_trait() {
    bool is_open = path_with_open_arguments();
    while (goes_on() && eat('p')) {
      is_open ? put(", ") : put('<');
      is_open = true;
      put(identifier());
      put(" = ");
      type();
    }
    if (is_open) put('>');
  }

  // Returns whether generic arguments were put, without the ">" after them.
  bool path_with_open_arguments() {
    const Level level(*this);
    if (!goes_on()) return false;
    bool is_open = false;
    if (eat('B')) {
      backref([&] { is_open = path_with_open_arguments(); });
    } else if (eat('I')) {
      path(false);
      put('<');
      list(", ", [this] { generic_arg(); });
      is_open = true;
    } else {
      path(false);
    }
    return is_open;
  }

  void constant() {
    const Level level(*this);
    if (!goes_on()) return;
    if (eat('B')) return backref([this] { constant(); });
    switch (next()) {
      case 'p':
        return put('_');
      case 'a':
      case 's':
      case 'l':
      case 'x':
      case 'n':
      case 'i':
        if (eat('n')) put('-');
        return unsigned_constant();
      case 'h':
      case 't':
      case 'm':
      case 'y':
      case 'o':
      case 'j':
        return unsigned_constant();
      case 'b': {
        const uint64_t value = hex_digits().value;
        if (value > 1) fail();
        return value == 0 ? put("false") : put("true");
      }
      case 'c':
        return character_constant();
      default:
        fail();
    }
  }

  struct HexDigits {
    std::string_view digits;
    uint64_t value = 0;  // of the last 16
  };
  HexDigits hex_digits() {
    HexDigits found;
    const size_t begin = at_;
    while (goes_on() && peek() != '_') {
      const int digit = hex_value(next());
      if (digit < 0) fail();
      found.value = found.value << 4 | static_cast<uint64_t>(digit & 0xF);
    }
    if (!goes_on() || at_ == begin) {
      fail();
      return found;
    }
    found.digits = {name_.data() + begin, at_ - begin};
    ++at_;
    return found;
  }

  void unsigned_constant() {
    const HexDigits found = hex_digits();
    if (found.digits.size() <= 16) return put_number(found.value);
    put("0x");
    put(found.digits);
  }

  void character_constant() {
    const HexDigits found = hex_digits();
    if (found.digits.size() > 8) fail();
    put('\'');
    switch (found.value) {
      case '\t':
        put("\\t");
        break;
      case '\r':
        put("\\r");
        break;
      case '\n':
        put("\\n");
        break;
      default:
        if (found.value >= ' ' && found.value < 0x7F) {
          put(static_cast<char>(found.value));
        } else {
          put("\\u{");
          put(found.digits);
          put('}');
        }
    }
    put('\'');
  }

  const std::string_view name_;
  DecodedText& text_;
  size_t at_ = 0;
  unsigned depth_ = 0;
  unsigned steps_ = 0;
  uint64_t lifetimes_ = 0;  // that binders have introduced
  bool is_silent_ = false;  // nothing is put
  bool failed_ = false;
};

}  // namespace

bool decode_rust_v0(std::string_view name, DecodedText& text) {
  if (!has_at(name, 0, "_R") || name.size() < 3 || !is_upper(name[2])) return false;
  size_t end = 2;
  while (end < name.size() && name[end] != '.') ++end;
  return Parser({name.data() + 2, end - 2}, text).parse();
}

}  // namespace arctrace
