#include "writer_shim/shim_options.hpp"

#include <cstddef>

namespace arctrace::shim {
namespace {

struct Text {
  const char* begin;
  size_t size;
  bool is(const char* other) const {
    size_t i = 0;
    while (i < size && other[i] == begin[i]) ++i;
    return i == size && other[i] == '\0';
  }
};

Text text_until(const char* from, char end) {
  size_t n = 0;
  while (from[n] != '\0' && from[n] != ';' && from[n] != end) ++n;
  return {from, n};
}

void set_option(ShimOptions& options, Text name, Text value) {
  if (name.is("libcall")) {
    if (value.is("program")) options.library_calls = LibraryCalls::kProgram;
    if (value.is("all")) options.library_calls = LibraryCalls::kAll;
  }
}

}  // namespace

ShimOptions parse_options(const char* text) {
  ShimOptions options;
  while (text != nullptr && *text != '\0') {
    const Text name = text_until(text, '=');
    text += name.size;
    if (*text == '=') {
      const Text value = text_until(++text, ';');
      set_option(options, name, value);
      text += value.size;
    }
    if (*text == ';') ++text;
  }
  return options;
}

}  // namespace arctrace::shim
