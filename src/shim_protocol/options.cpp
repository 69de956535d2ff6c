// Encodes and decodes options. An option is put as a whole or not at all, so that a full
// text still decodes.
#include "src/shim_protocol/options.hpp"

#include <iterator>

#include "src/base/memory.hpp"
#include "src/base/text.hpp"

namespace arctrace::shim {

namespace {

constexpr char kDigits[] = "0123456789ABCDEF";

// A number as text.
class NumberText {
 public:
  NumberText(uint64_t number, unsigned base) {
    do {
      *--begin_ = kDigits[number % base];
      number /= base;
    } while (number != 0);
  }
  std::string_view text() const {
    return {begin_, static_cast<size_t>(std::end(digits_) - begin_)};
  }

 private:
  char digits_[20];
  char* begin_ = std::end(digits_);
};

OptionKey key_of(Pattern::Kind kind) {
  switch (kind) {
    case Pattern::Kind::kFilter:
      return OptionKey::kFilter;
    case Pattern::Kind::kNotrace:
      return OptionKey::kNotrace;
    case Pattern::Kind::kModule:
      return OptionKey::kModule;
    case Pattern::Kind::kEntryOnly:
      return OptionKey::kEntryOnly;
    case Pattern::Kind::kPatch:
      return OptionKey::kPatch;
    default:
      return OptionKey::kArgs;
  }
}

}  // namespace

bool OptionsEncoder::put(char c) {
  if (size_ == kOptionsTextMax) return false;
  text_[size_++] = c;
  return true;
}

bool OptionsEncoder::put_field(std::string_view field, bool is_last) {
  for (const char c : field) {
    if (c != '%' && c != ';' && c != '\0' && (is_last || c != ':')) {
      if (!put(c)) return false;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    if (!put('%') || !put(kDigits[byte >> 4]) || !put(kDigits[byte & 15])) return false;
  }
  return is_last || put(':');
}

void OptionsEncoder::put_option(OptionKey key,
                                std::initializer_list<std::string_view> fields,
                                Overflow if_full) {
  const size_t size_before = size_;
  bool fits = size_ == 0 || put(';');
  for (const char* c = kOptionKeys[static_cast<size_t>(key)]; *c != '\0'; ++c) {
    fits = fits && put(*c);
  }
  for (const std::string_view& field : fields) {
    fits = fits && put_field(field, &field == fields.end() - 1);
  }
  if (fits) return;
  size_ = size_before;
  if (overflow_ == Overflow::kNone) overflow_ = if_full;
}

void OptionsEncoder::put_number(OptionKey key, uint64_t number) {
  put_option(key, {NumberText(number, 10).text()}, Overflow::kPatterns);
}

void OptionsEncoder::set_library_calls(LibraryCalls which) {
  put_option(OptionKey::kLibcall, {kLibraryCallWords[static_cast<size_t>(which)]},
             Overflow::kPatterns);
}

void OptionsEncoder::set_patcher(std::string_view path) {
  put_option(OptionKey::kPatcher, {path}, Overflow::kPatterns);
}

void OptionsEncoder::set_auto_args() {
  put_option(OptionKey::kAutoArgs, {kYesText}, Overflow::kPatterns);
}

void OptionsEncoder::set_depth_max(uint32_t depth) {
  put_number(OptionKey::kDepth, depth);
}

void OptionsEncoder::set_min_ns(uint64_t ns) { put_number(OptionKey::kTime, ns); }

void OptionsEncoder::set_size_min(uint64_t bytes) { put_number(OptionKey::kSize, bytes); }

bool OptionsEncoder::has_space(size_t& count, size_t max, Overflow if_full) {
  if (count < max) {
    ++count;
    return true;
  }
  if (overflow_ == Overflow::kNone) overflow_ = if_full;
  return false;
}

void OptionsEncoder::add_pattern(Pattern::Kind kind, std::string_view text) {
  if (has_space(pattern_count_, kPatternsMax, Overflow::kPatterns)) {
    put_option(key_of(kind), {text}, Overflow::kPatterns);
  }
}

void OptionsEncoder::add_args(std::string_view arg_specs, std::string_view pattern) {
  if (has_space(pattern_count_, kPatternsMax, Overflow::kPatterns)) {
    put_option(OptionKey::kArgs, {arg_specs, pattern}, Overflow::kPatterns);
  }
}

void OptionsEncoder::add_condition(std::string_view code, std::string_view pattern) {
  if (has_space(pattern_count_, kPatternsMax, Overflow::kPatterns)) {
    put_option(OptionKey::kWhen, {code, pattern}, Overflow::kPatterns);
  }
}

void OptionsEncoder::set_file(uint64_t device, uint64_t inode) {
  put_option(OptionKey::kFile,
             {NumberText(device, 16).text(), NumberText(inode, 16).text()},
             Overflow::kTypes);
}

void OptionsEncoder::add_function(uint64_t address, const Types& types) {
  if (has_space(type_count_, kTypesMax, Overflow::kTypes)) {
    put_option(OptionKey::kFunction,
               {NumberText(address, 16).text(), types.arg_specs, types.arg_names,
                types.retval_names},
               Overflow::kTypes);
  }
}

void OptionsEncoder::add_callee(std::string_view name, const Types& types) {
  if (has_space(type_count_, kTypesMax, Overflow::kTypes)) {
    put_option(OptionKey::kCallee,
               {name, types.arg_specs, types.arg_names, types.retval_names},
               Overflow::kTypes);
  }
}

// The shim's side of the options protocol: splits the text into options and fields, whose
// decoded bytes it copies into ShimOptions::texts.

namespace {

constexpr unsigned kNoDigit = 16;

unsigned hex_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A') + 10;
  return kNoDigit;
}

// The number that `text` begins with; UINT64_MAX if it is larger than that.
uint64_t number(const char* text, unsigned base) {
  uint64_t value = 0;
  for (; hex_digit(*text) < base; ++text) {
    if (__builtin_mul_overflow(value, uint64_t{base}, &value) ||
        __builtin_add_overflow(value, uint64_t{hex_digit(*text)}, &value)) {
      return UINT64_MAX;
    }
  }
  return value;
}

bool is_yes(const char* text) { return equal(text, kYesText); }

class Decoder {
 public:
  Decoder(const char* text, ShimOptions& options)
      : at_(text), options_(options), free_(options.texts) {}

  void decode() {
    while (*at_ != '\0') {
      for (size_t i = 0; i < std::size(kOptionKeys); ++i) {
        if (!starts_with(at_, kOptionKeys[i])) continue;
        at_ += text_length(kOptionKeys[i], SIZE_MAX);
        set_option(static_cast<OptionKey>(i));
        break;
      }
      while (*at_ != '\0' && *at_ != ';') ++at_;
      if (*at_ == ';') ++at_;
    }
  }

 private:
  // Copies the bytes up to the next separator. Only ";" ends an option's last field.
  const char* take(bool is_last) {
    const char* const field = free_;
    for (; *at_ != '\0' && *at_ != ';' && (is_last || *at_ != ':'); ++at_) {
      if (*at_ == '%' && hex_digit(at_[1]) != kNoDigit && hex_digit(at_[2]) != kNoDigit) {
        put(static_cast<char>(hex_digit(at_[1]) << 4 | hex_digit(at_[2])));
        at_ += 2;
      } else {
        put(*at_);
      }
    }
    if (*at_ == ':') ++at_;
    put('\0');
    return field;
  }
  const char* field() { return take(false); }
  const char* last_field() { return take(true); }

  // A field is never longer than it is encoded, but a hostile text may have more of them
  // than separators. The last byte stays zero.
  void put(char c) {
    if (free_ < std::end(options_.texts) - 1) *free_++ = c;
  }

  void set_option(OptionKey key) {
    switch (key) {
      case OptionKey::kLibcall:
        set_library_calls(last_field());
        return;
      case OptionKey::kFilter:
        add_pattern(Pattern::Kind::kFilter, nullptr);
        return;
      case OptionKey::kNotrace:
        add_pattern(Pattern::Kind::kNotrace, nullptr);
        return;
      case OptionKey::kModule:
        add_pattern(Pattern::Kind::kModule, nullptr);
        return;
      case OptionKey::kEntryOnly:
        add_pattern(Pattern::Kind::kEntryOnly, nullptr);
        return;
      case OptionKey::kPatch:
        add_pattern(Pattern::Kind::kPatch, nullptr);
        return;
      case OptionKey::kPatcher:
        options_.patcher = last_field();
        return;
      case OptionKey::kArgs:
        add_pattern(Pattern::Kind::kArgs, field());
        return;
      case OptionKey::kWhen:
        add_pattern(Pattern::Kind::kWhen, field());
        return;
      case OptionKey::kFile:
        file_.device = number(field(), 16);
        file_.inode = number(last_field(), 16);
        return;
      case OptionKey::kFunction: {
        FileAddress at = file_;
        at.address = number(field(), 16);
        add_types(at, nullptr);
        return;
      }
      case OptionKey::kCallee:
        add_types({}, field());
        return;
      case OptionKey::kAutoArgs:
        options_.auto_args = is_yes(last_field());
        return;
      case OptionKey::kDepth: {
        const uint64_t depth = number(last_field(), 10);
        options_.depth_max =
            depth > UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(depth);
        return;
      }
      case OptionKey::kTime:
        options_.min_ns = number(last_field(), 10);
        return;
      case OptionKey::kSize:
        options_.size_min = number(last_field(), 10);
        return;
    }
  }

  void set_library_calls(const char* word) {
    for (size_t i = 0; i < std::size(kLibraryCallWords); ++i) {
      if (equal(kLibraryCallWords[i], word)) {
        options_.library_calls = static_cast<LibraryCalls>(i);
      }
    }
  }

  // Takes the pattern's text from the option.
  void add_pattern(Pattern::Kind kind, const char* arg_specs) {
    if (options_.pattern_count == kPatternsMax) return;
    options_.patterns[options_.pattern_count++] = {kind, last_field(), arg_specs};
  }

  // Takes the specs and the names from the option.
  void add_types(const FileAddress& at, const char* name) {
    if (options_.type_count == kTypesMax) return;
    FunctionTypes& types = options_.types[options_.type_count++];
    types.at = at;
    types.name = name;
    types.arg_specs = field();
    types.arg_names = field();
    types.retval_names = last_field();
  }

  const char* at_;
  ShimOptions& options_;
  char* free_;
  FileAddress file_{};  // the file of the next functions; no address
};

}  // namespace

void decode_options(const char* text, ShimOptions& options) {
  if (text == nullptr || text_length(text, kOptionsTextMax + 1) > kOptionsTextMax) return;
  Decoder(text, options).decode();
}

}  // namespace arctrace::shim
