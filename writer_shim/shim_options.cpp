#include "writer_shim/shim_options.hpp"

#include "writer_shim/text.hpp"

namespace arctrace::shim {
namespace {

constexpr size_t kTextMax = 4096;

// Values as they are meant, each ended by a zero.
char decoded[kTextMax];

// The hexadecimal digit's value; 16: it is none.
unsigned digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
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

// `name` ends with its "=".
void set_option(ShimOptions& options, const char* name, const char* value) {
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
  while (*text != '\0') {
    const char* name = text;
    while (*text != '\0' && *text != ';' && *text != '=') ++text;
    if (*text == '=') {
      const char* value = free;
      free = decode(++text, free);
      set_option(options, name, value);
    }
    while (*text != '\0' && *text != ';') ++text;
    if (*text == ';') ++text;
  }
}

}  // namespace arctrace::shim
