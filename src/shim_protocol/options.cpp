#include "src/shim_protocol/options.hpp"

#include "src/base/memory.hpp"
#include "src/base/text.hpp"

namespace arctrace::shim {
namespace {

constexpr size_t kTextMax = size_t{1} << 15;

// Values as they are meant, each ended by a zero.
char decoded[kTextMax];

// The hexadecimal digit's value; 16: it is none.
unsigned digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A') + 10;
  return 16;
}

// Copies the value at `text` to `to`; returns its end there.
char* decode(const char* text, char* to) {
  for (; *text != '\0' && *text != ';'; ++text) {
    if (*text == '%' && digit(text[1]) < 16 && digit(text[2]) < 16) {
      *to++ = static_cast<char>(digit(text[1]) << 4 | digit(text[2]));
      text += 2;
    } else {
      *to++ = *text;
    }
  }
  *to++ = '\0';
  return to;
}

uint64_t number(const char* text) {
  uint64_t value = 0;
  for (; *text >= '0' && *text <= '9'; ++text) {
    if (__builtin_mul_overflow(value, uint64_t{10}, &value)) return UINT64_MAX;
    value += static_cast<uint64_t>(*text - '0');
  }
  return value;
}

void add_pattern(ShimOptions& options, Pattern::Kind kind, const char* text,
                 const char* values = nullptr) {
  if (options.pattern_count == ShimOptions::kPatternsMax) return;
  options.patterns[options.pattern_count++] = {kind, text, values};
}

// "VALUES:PATTERN"
void add_values(ShimOptions& options, const char* text) {
  const char* pattern = text;
  while (*pattern != '\0' && *pattern != ':') ++pattern;
  if (*pattern == ':') {
    add_pattern(options, Pattern::Kind::kValues, pattern + 1, text);
  }
}

uint64_t hex_number(const char* text) {
  uint64_t value = 0;
  for (; digit(*text) < 16; ++text) value = value << 4 | digit(*text);
  return value;
}

// Ends `text` at the next ":"; returns what stands behind, empty if there is none.
char* cut_off(char* text) {
  while (*text != '\0' && *text != ':') ++text;
  if (*text == ':') *text++ = '\0';
  return text;
}

// "ADDRESS:VALUES:NAMES:RESULT" in the file of `place`, or "NAME:VALUES:NAMES:RESULT".
void add_types(ShimOptions& options, const FunctionPlace& file, char* text,
               bool is_named) {
  if (options.type_count == ShimOptions::kTypesMax) return;
  char* values = cut_off(text);
  char* names = cut_off(values);
  const char* result_names = cut_off(names);
  FunctionTypes& types = options.types[options.type_count++];
  types = {file, is_named ? text : nullptr, values, names, result_names};
  types.place.address = is_named ? 0 : hex_number(text);
}

// `name` ends with its "=". `file`: of the types that come.
void set_option(ShimOptions& options, FunctionPlace& file, const char* name,
                char* value) {
  if (starts_with(name, "libcall=")) {
    if (equal(value, "program")) options.library_calls = LibraryCalls::kProgram;
    if (equal(value, "all")) options.library_calls = LibraryCalls::kAll;
  } else if (starts_with(name, "filter=")) {
    add_pattern(options, Pattern::Kind::kChosen, value);
  } else if (starts_with(name, "notrace=")) {
    add_pattern(options, Pattern::Kind::kLeftOut, value);
  } else if (starts_with(name, "module=")) {
    add_pattern(options, Pattern::Kind::kModule, value);
  } else if (starts_with(name, "values=")) {
    add_values(options, value);
  } else if (starts_with(name, "types=")) {
    const char* inode = cut_off(value);
    file = {hex_number(value), hex_number(inode), 0};
  } else if (starts_with(name, "function=")) {
    add_types(options, file, value, false);
  } else if (starts_with(name, "callee=")) {
    add_types(options, file, value, true);
  } else if (starts_with(name, "autovalues=")) {
    options.auto_values = equal(value, "yes");
  } else if (starts_with(name, "live=")) {
    options.live = equal(value, "yes");
  } else if (starts_with(name, "depth=")) {
    const uint64_t depth = number(value);
    options.depth_max = depth > UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(depth);
  } else if (starts_with(name, "time=")) {
    options.min_ns = number(value);
  } else if (starts_with(name, "size=")) {
    options.size_min = number(value);
  }
}

}  // namespace

void parse_options(const char* text, ShimOptions& options) {
  if (text == nullptr || text_length(text, kTextMax) == kTextMax) return;
  char* free = decoded;
  FunctionPlace file{};
  while (*text != '\0') {
    const char* name = text;
    while (*text != '\0' && *text != ';' && *text != '=') ++text;
    if (*text == '=') {
      char* value = free;
      free = decode(++text, free);
      set_option(options, file, name, value);
    }
    while (*text != '\0' && *text != ';') ++text;
    if (*text == ';') ++text;
  }
}

}  // namespace arctrace::shim
