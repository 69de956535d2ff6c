// Functions of which the same values are recorded share an entry of the writer's table:
// calls carry its number, which is found when the function is hooked.
#include <arctrace/format.h>

#include <iterator>

#include "src/api/shim_interface.h"
#include "src/base/large_table.hpp"
#include "src/base/memory.hpp"
#include "src/base/text.hpp"
#include "src/shim_protocol/arg_spec_code.hpp"
#include "src/shim_protocol/auto_args.hpp"
#include "writer_shim/filter/function_patterns.hpp"

namespace arctrace::shim {
namespace {

// The table is never full, whatever the options. Each function with types needs at most
// one entry, and so does each with auto-args. Any other function has its arguments from
// one pattern (or from none), and its return value from one. A pattern has arguments, a
// return value, or both, and two patterns of the same sort never make a pair: with only
// arguments they give no return value, and of two that have both the later one gives
// both. So there are at most as many pairs as a graph of kPatternsMax nodes without two
// connected ones in the same of three sorts has edges, which is the third of a square.
constexpr size_t kPatternPairsMax = kPatternsMax * kPatternsMax / 3;
// A lock call of which no arguments are recorded has an entry of its own.
static_assert(1 + kTypesMax + std::size(kAutoArgsTable) + std::size(kLockCalls) +
                  kPatternPairsMax + kPatternsMax <=
              ARCTRACE_SHIM_CALL_ARGS_MAX);

const ShimOptions* options;  // null: none were set
ARCTRACE_LARGE_TABLE constinit arctrace_shim_call_args
    table[ARCTRACE_SHIM_CALL_ARGS_MAX]{};
uint32_t table_used = 1;  // entry 0 is that of functions without recorded values

// The ids of a function's names in `options->types`, by index; 0: not defined yet. They
// are stored because the writer defines a name anew at each call, and a function that is
// hooked in many modules would otherwise have an entry for each.
struct NameIds {
  uint32_t args, retval;
};
ARCTRACE_LARGE_TABLE constinit NameIds name_ids[kTypesMax]{};
bool have_name_ids;  // some are not 0

bool is_same(const arctrace_shim_arg_spec& a, const arctrace_shim_arg_spec& b) {
  return a.kind == b.kind && a.argument == b.argument && a.size == b.size &&
         a.failure == b.failure;
}

bool is_same(const arctrace_shim_call_args& a, const arctrace_shim_call_args& b) {
  bool same = a.argument_count == b.argument_count && a.locks == b.locks &&
              is_same(a.result, b.result);
  for (uint32_t i = 0; same && i < a.argument_count; ++i) {
    same = is_same(a.arguments[i], b.arguments[i]);
  }
  return same && a.names == b.names && a.result_names == b.result_names &&
         a.conditions == b.conditions;
}

enum class Part { kArgs, kRetval, kBoth };

// Replaces this part of `specs` by that of `text`, if `text` has any of it.
void read_specs(const char* text, Part part, arctrace_shim_call_args& specs) {
  bool is_first = true;
  arctrace_shim_arg_spec spec;
  for (; decode_arg_spec(text, spec); text += kArgSpecSize) {
    if (spec.argument == 0) {
      if (part != Part::kArgs) {
        specs.result = spec;
        specs.result_names = 0;
      }
      continue;
    }
    if (part == Part::kRetval) continue;
    if (is_first) {
      specs.argument_count = 0;
      specs.names = 0;
    }
    is_first = false;
    if (specs.argument_count == ARCTRACE_SHIM_RECORDED_ARGS_MAX) return;
    specs.arguments[specs.argument_count++] = spec;
  }
}

// The number of the equal entry, or of a new one if there is none. 0: there is no space,
// which may happen only if a program's file changes in place while the program loads it
// again and again, so that its addresses have ever other functions.
uint32_t number_of(const arctrace_shim_call_args& specs) {
  for (uint32_t i = 1; i < table_used; ++i) {
    if (is_same(table[i], specs)) return i;
  }
  if (table_used == ARCTRACE_SHIM_CALL_ARGS_MAX) return 0;
  table[table_used] = specs;
  return table_used++;
}

void read_auto_args(const char* name, Part part, arctrace_shim_call_args& specs) {
  for (const AutoArgs& function : kAutoArgsTable) {
    if (equal(function.name.text, name)) read_specs(function.arg_specs, part, specs);
  }
}

// The id in `known`, which becomes that of `name` if there is none yet; 0 if `name` is
// empty.
uint32_t name_id(const char* name, uint32_t& known) {
  if (known == 0 && *name != '\0') known = arctrace_shim_define_name(name);
  return known;
}

void read_typed(const FunctionTypes& types, Part part, arctrace_shim_call_args& specs) {
  NameIds& ids = name_ids[&types - options->types];
  have_name_ids = true;
  read_specs(types.arg_specs, part, specs);
  if (part == Part::kArgs) specs.names = name_id(types.arg_names, ids.args);
  if (part == Part::kRetval) {
    specs.result_names = name_id(types.retval_names, ids.retval);
  }
}

// The part for which a pattern wants the values that the function's types have; kBoth:
// the pattern has specs itself.
Part typed_part(const char* arg_specs) {
  if (*arg_specs == kTypedArgs) return Part::kArgs;
  return *arg_specs == kTypedRetval ? Part::kRetval : Part::kBoth;
}

// The types of the function that the command has read; null: none.
const FunctionTypes* types_of(const char* name, const FileAddress* at) {
  for (size_t i = 0; i < options->type_count; ++i) {
    const FunctionTypes& types = options->types[i];
    const bool is_same = at == nullptr ? types.name != nullptr && equal(types.name, name)
                                       : types.name == nullptr && types.at == *at;
    if (is_same) return &types;
  }
  return nullptr;
}

// Reads the locks of the function's calls, and whether they were taken, if no arguments
// and no return value are recorded.
void read_locks(const char* name, arctrace_shim_call_args& specs) {
  for (const LockCall& function : kLockCalls) {
    if (!equal(function.name.text, name)) continue;
    if (specs.argument_count == 0) specs.locks = function.locks;
    if (specs.result.kind == 0) read_specs(function.result, Part::kRetval, specs);
  }
}

// Whether the function is a copy that gcc has made with changed parameters.
bool has_other_parameters(const char* name) {
  constexpr const char* kMarks[] = {".isra.", ".constprop.", ".part."};
  for (; *name != '\0'; ++name) {
    for (const char* mark : kMarks) {
      if (starts_with(name, mark)) return true;
    }
  }
  return false;
}

// The text of the MARK behind a call that fulfils a condition: whoever reads the snapshot
// finds the call by it. A long pattern is cut.
constexpr char kMarkBegin[] = "--snapshot-when ";
struct ConditionMark {
  char text[128];

  void set(const char* pattern) {
    constexpr size_t kBegin = sizeof kMarkBegin - 1;
    const size_t size = text_length(pattern, sizeof text - kBegin - 1);
    copy_bytes(text, kMarkBegin, kBegin);
    copy_bytes(text + kBegin, pattern, size);
    text[kBegin + size] = '\0';
  }
};

// Sets the conditions by the patterns' numbers; a pattern that is no condition is
// fulfilled by no call.
void set_conditions() {
  ARCTRACE_LARGE_TABLE static constinit arctrace_shim_call_condition
      conditions[kPatternsMax]{};
  ARCTRACE_LARGE_TABLE static constinit ConditionMark marks[kPatternsMax]{};
  static_assert(kPatternsMax <= ARCTRACE_SHIM_CONDITIONS_MAX);
  uint32_t count = 0;
  for (uint32_t i = 0; i < options->pattern_count; ++i) {
    const Pattern& pattern = options->patterns[i];
    if (pattern.kind != Pattern::Kind::kWhen) continue;
    if (!decode_call_condition(pattern.arg_specs, conditions[i])) continue;
    marks[i].set(pattern.text);
    conditions[i].mark = marks[i].text;
    count = i + 1;
  }
  if (count != 0) arctrace_shim_set_call_conditions(conditions, count);
}

}  // namespace

void set_arg_options(const ShimOptions& wanted) {
  options = &wanted;
  table_used = 1;
  if (have_name_ids) fill_zero(name_ids, sizeof name_ids);
  have_name_ids = false;
  arctrace_shim_set_call_args(table);
  set_conditions();
}

bool records_args() { return options != nullptr && options->records_args(); }

uint32_t count_only_locks(uint32_t number) {
  const arctrace_shim_call_args& args = table[number];
  return args.result.kind == 0 && args.conditions == 0 ? args.locks : 0;
}

uint32_t arg_specs_of(const char* name, const FileAddress* at) {
  if (options == nullptr || has_other_parameters(name)) return 0;
  arctrace_shim_call_args specs{};
  if (options->auto_args && at == nullptr) read_auto_args(name, Part::kBoth, specs);
  const uint64_t patterns = matching_arg_patterns(name);
  for (size_t i = 0; i < options->pattern_count; ++i) {
    if ((patterns >> i & 1) == 0) continue;
    if (options->patterns[i].kind == Pattern::Kind::kWhen) {
      specs.conditions |= uint64_t{1} << i;
      continue;
    }
    const char* text = options->patterns[i].arg_specs;
    const Part typed = typed_part(text);
    if (typed == Part::kBoth) {
      read_specs(text, Part::kBoth, specs);
    } else if (const FunctionTypes* types = types_of(name, at); types != nullptr) {
      read_typed(*types, typed, specs);
    } else if (at == nullptr) {
      read_auto_args(name, typed, specs);
    }
  }
  if (at == nullptr) read_locks(name, specs);
  if (specs.argument_count == 0 && specs.result.kind == 0 && specs.locks == 0 &&
      specs.conditions == 0) {
    return 0;
  }
  return number_of(specs);
}

}  // namespace arctrace::shim
