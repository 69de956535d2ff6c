#include "reader/cli/record/patch_choice.hpp"

#include <absl/strings/str_cat.h>

#include "src/shim_protocol/options.hpp"

namespace arctrace::cli {
namespace {

// A function whose name begins so is one of the runtime's.
struct Runtime {
  std::string_view function;
  std::string_view name;
};
constexpr Runtime kRuntimes[] = {
    {"caml_call_gc", "OCaml"},        {"caml_main", "OCaml"},
    {"caml_startup", "OCaml"},        {"_ZN2v88internal", "V8"},
    {"_ZN2v87Isolate", "V8"},         {"JNI_CreateJavaVM", "Java"},
    {"runtime.morestack", "Go"},      {"mono_jit_init", "Mono"},
    {"hs_main", "Haskell"},           {"__asan_init", "a sanitizer"},
    {"__hwasan_init", "a sanitizer"}, {"__msan_init", "a sanitizer"},
    {"__tsan_init", "a sanitizer"},
};

}  // namespace

void PatchChoice::add(const std::string& text, size_t index) {
  const bool is_name = text.find_first_of("*?[\\") == std::string::npos &&
                       !text.starts_with(shim::kRegexMark);
  patterns_.push_back({index, is_name, std::make_unique<FunctionPattern>(text)});
}

PatchChoice::Matched PatchChoice::match(const FunctionPlan& function) const {
  Matched matched;
  const FunctionNames names(name_of(function));
  for (const Pattern& one : patterns_) {
    if (!one.pattern->matches_any(names)) continue;
    const uint64_t bit = uint64_t{1} << one.index;
    const uint64_t least = size_min_ != 0 ? size_min_ : one.is_name ? 0 : kPatchedSizeMin;
    matched.patterns |= bit;
    matched.is_named |= one.is_name;
    if (function.size >= least) matched.chosen |= bit;
  }
  return matched;
}

std::string PatchChoice::name_of(const FunctionPlan& function) const {
  return function.name.empty() ? absl::StrCat(module_, "+0x", absl::Hex(function.start))
                               : function.name;
}

std::string_view runtime_that_walks_stacks(const ModuleCode& code) {
  for (const NamedFunction& function : code.functions) {
    for (const Runtime& runtime : kRuntimes) {
      if (std::string_view(function.name).starts_with(runtime.function)) {
        return runtime.name;
      }
    }
  }
  return {};
}

}  // namespace arctrace::cli
