#include "writer_shim/filter/arg_specs.hpp"

#include <arctrace/format.h>

#include "src/api/shim_interface.h"
#include "src/base/text.hpp"
#include "src/shim_protocol/auto_args.hpp"
#include "writer_shim/filter/function_patterns.hpp"

namespace arctrace::shim {
namespace {

const ShimOptions* chosen;  // null: no values
constinit arctrace_shim_values all[ARCTRACE_SHIM_VALUES_MAX]{};
uint32_t values_used = 1;  // the first is none's

bool is_same(const arctrace_shim_value& a, const arctrace_shim_value& b) {
  return a.kind == b.kind && a.argument == b.argument && a.size == b.size &&
         a.failure == b.failure;
}

bool is_same(const arctrace_shim_values& a, const arctrace_shim_values& b) {
  bool same = a.argument_count == b.argument_count && is_same(a.result, b.result);
  for (uint32_t i = 0; same && i < a.argument_count; ++i) {
    same = is_same(a.arguments[i], b.arguments[i]);
  }
  return same && a.names == b.names && a.result_names == b.result_names;
}

uint8_t kind_of(char letter) {
  return letter == 'S' ? ARCTRACE_SHIM_STD_STRING : static_cast<uint8_t>(letter - 'a');
}

bool is_right(const arctrace_shim_value& value) {
  const bool is_size =
      value.size == 1 || value.size == 2 || value.size == 4 || value.size == 8;
  const bool is_kind =
      (value.kind >= ARCTRACE_VALUE_SIGNED && value.kind <= ARCTRACE_VALUE_BOOL) ||
      value.kind == ARCTRACE_SHIM_STD_STRING;
  const uint8_t registers = value.kind == ARCTRACE_VALUE_FLOAT
                                ? ARCTRACE_SHIM_VECTORS_MAX
                                : ARCTRACE_SHIM_ARGUMENTS_MAX;
  return is_size && is_kind &&
         value.argument <= registers + ARCTRACE_SHIM_STACK_WORDS_MAX;
}

uint8_t argument_of(char digit) {
  return static_cast<uint8_t>(digit >= 'a' ? digit - 'a' + 10 : digit - '0');
}

enum class Part { kArguments, kResult, kBoth };

// Takes what `text` says of values in the place of what there was of the same sort.
void read_values(const char* text, Part part, arctrace_shim_values& values) {
  bool is_first = true;
  while (text[0] != '\0' && text[1] != '\0' && text[2] != '\0' && text[3] != '\0') {
    const arctrace_shim_value value = {kind_of(text[1]), argument_of(text[0]),
                                       static_cast<uint8_t>(text[2] - '0'),
                                       static_cast<uint8_t>(text[3] - '0')};
    text += 4;
    if (!is_right(value)) return;
    if (value.argument == 0) {
      if (part != Part::kArguments) {
        values.result = value;
        values.result_names = 0;
      }
      continue;
    }
    if (part == Part::kResult) continue;
    if (is_first) {
      values.argument_count = 0;
      values.names = 0;
    }
    is_first = false;
    if (values.argument_count == ARCTRACE_SHIM_TOLD_MAX) return;
    values.arguments[values.argument_count++] = value;
  }
}

// 0: there are too many.
uint32_t number_of(const arctrace_shim_values& values) {
  for (uint32_t i = 1; i < values_used; ++i) {
    if (is_same(all[i], values)) return i;
  }
  if (values_used == ARCTRACE_SHIM_VALUES_MAX) return 0;
  all[values_used] = values;
  return values_used++;
}

void read_known(const char* name, Part part, arctrace_shim_values& values) {
  for (const WellKnownCall& known : kWellKnownCalls) {
    if (equal(known.name, name)) read_values(known.values, part, values);
  }
}

void read_typed(const FunctionTypes& types, Part part, arctrace_shim_values& values) {
  read_values(types.values, part, values);
  if (part == Part::kArguments && *types.names != '\0') {
    values.names = arctrace_define_name(types.names);
  }
  if (part == Part::kResult && *types.result_names != '\0') {
    values.result_names = arctrace_define_name(types.result_names);
  }
}

// Which part of what the types say the user wants; kBoth: none, he says it himself.
Part typed_part(const char* values) {
  if (*values == kTypedArguments) return Part::kArguments;
  return *values == kTypedResult ? Part::kResult : Part::kBoth;
}

// What the recorder knows of a function, or null.
const FunctionTypes* types_of(const char* name, const FunctionPlace* place) {
  for (size_t i = 0; i < chosen->type_count; ++i) {
    const FunctionTypes& types = chosen->types[i];
    const bool is_same = place == nullptr
                             ? types.name != nullptr && equal(types.name, name)
                             : types.name == nullptr && types.place == *place;
    if (is_same) return &types;
  }
  return nullptr;
}

// A copy that gcc has made of a function, and changed its parameters.
bool has_other_parameters(const char* name) {
  constexpr const char* kMarks[] = {".isra.", ".constprop.", ".part."};
  for (; *name != '\0'; ++name) {
    for (const char* mark : kMarks) {
      if (starts_with(name, mark)) return true;
    }
  }
  return false;
}

}  // namespace

void choose_values(const ShimOptions& options) {
  chosen = &options;
  arctrace_shim_set_values(all);
}

bool have_values() { return chosen != nullptr; }

uint32_t values_of(const char* name, const FunctionPlace* place) {
  if (chosen == nullptr || has_other_parameters(name)) return 0;
  arctrace_shim_values values{};
  if (chosen->auto_values && place == nullptr) read_known(name, Part::kBoth, values);
  const uint64_t patterns = matching_values(name);
  for (size_t i = 0; i < chosen->pattern_count; ++i) {
    if ((patterns >> i & 1) == 0) continue;
    const char* text = chosen->patterns[i].values;
    const Part typed = typed_part(text);
    if (typed == Part::kBoth) {
      read_values(text, Part::kBoth, values);
    } else if (const FunctionTypes* types = types_of(name, place); types != nullptr) {
      read_typed(*types, typed, values);
    } else if (place == nullptr) {
      read_known(name, typed, values);
    }
  }
  if (values.argument_count == 0 && values.result.kind == 0) return 0;
  return number_of(values);
}

}  // namespace arctrace::shim
