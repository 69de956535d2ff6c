// Encodes options. An option is put whole or not at all, so that a full text still
// decodes.
#include "src/shim_protocol/options_encoder.hpp"

#include <iterator>

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
  put_option(OptionKey::kAutoArgs, {kYes}, Overflow::kPatterns);
}

void OptionsEncoder::set_depth_max(uint32_t depth) {
  put_number(OptionKey::kDepth, depth);
}

void OptionsEncoder::set_min_ns(uint64_t ns) { put_number(OptionKey::kTime, ns); }

void OptionsEncoder::set_size_min(uint64_t bytes) { put_number(OptionKey::kSize, bytes); }

bool OptionsEncoder::has_room(size_t& count, size_t max, Overflow if_full) {
  if (count < max) {
    ++count;
    return true;
  }
  if (overflow_ == Overflow::kNone) overflow_ = if_full;
  return false;
}

void OptionsEncoder::add_pattern(Pattern::Kind kind, std::string_view text) {
  if (has_room(pattern_count_, kPatternsMax, Overflow::kPatterns)) {
    put_option(key_of(kind), {text}, Overflow::kPatterns);
  }
}

void OptionsEncoder::add_args(std::string_view arg_specs, std::string_view pattern) {
  if (has_room(pattern_count_, kPatternsMax, Overflow::kPatterns)) {
    put_option(OptionKey::kArgs, {arg_specs, pattern}, Overflow::kPatterns);
  }
}

void OptionsEncoder::add_condition(std::string_view code, std::string_view pattern) {
  if (has_room(pattern_count_, kPatternsMax, Overflow::kPatterns)) {
    put_option(OptionKey::kWhen, {code, pattern}, Overflow::kPatterns);
  }
}

void OptionsEncoder::set_file(uint64_t device, uint64_t inode) {
  put_option(OptionKey::kFile,
             {NumberText(device, 16).text(), NumberText(inode, 16).text()},
             Overflow::kTypes);
}

void OptionsEncoder::add_function(uint64_t address, const Types& types) {
  if (has_room(type_count_, kTypesMax, Overflow::kTypes)) {
    put_option(OptionKey::kFunction,
               {NumberText(address, 16).text(), types.arg_specs, types.arg_names,
                types.retval_names},
               Overflow::kTypes);
  }
}

void OptionsEncoder::add_callee(std::string_view name, const Types& types) {
  if (has_room(type_count_, kTypesMax, Overflow::kTypes)) {
    put_option(OptionKey::kCallee,
               {name, types.arg_specs, types.arg_names, types.retval_names},
               Overflow::kTypes);
  }
}

}  // namespace arctrace::shim
