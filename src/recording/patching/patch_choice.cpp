// Matches functions against the patterns of -P, and recognises runtimes that walk stacks.
#include "src/recording/patching/patch_choice.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "reader/symbols/elf_file.hpp"
#include "src/shim_protocol/options.hpp"
#include "src/shim_protocol/patching.hpp"

namespace arctrace::recording {
namespace {

// A runtime, and the prefix of its functions' names.
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
    {"__tsan_init", "a sanitizer"},   {"_Unwind_Find_FDE", "the unwinder"},
};

}  // namespace

void PatchChoice::add(const std::string& option, size_t index) {
  const shim::PatchPattern split = shim::split_patch_pattern(option);
  if (!shim::is_for_module(split, library_)) return;
  const std::string text(split.function);
  const bool is_name = text.find_first_of("*?[\\") == std::string::npos &&
                       !text.starts_with(shim::kRegexMark);
  const bool is_for_all = text == "*" || text == ".";  // "." is uftrace's word for all
  patterns_.push_back({index, is_name && !is_for_all, is_for_all,
                       std::make_unique<FunctionPattern>(is_for_all ? "*" : text)});
}

void PatchChoice::read_aliases_untrusted(const std::string& path) {
  // Patterns for all functions need no names.
  if (std::all_of(patterns_.begin(), patterns_.end(),
                  [](const Pattern& one) { return one.is_for_all; })) {
    return;
  }
  const auto file = reader::ElfFile::open_untrusted(path);
  if (!file.ok()) return;
  for (const reader::ElfSymbolTable& table : file->function_symbols()) {
    for (const reader::ElfSymbol& symbol : table.symbols) {
      aliases_[symbol.address].emplace_back(table.names.c_str() + symbol.name);
    }
  }
}

PatchChoice::Matched PatchChoice::match(const recorder::FunctionPlan& function) const {
  Matched matched;
  std::vector<FunctionNames> names;
  names.emplace_back(name_of(function));
  const auto aliases = aliases_.find(function.start);
  if (aliases != aliases_.end()) {
    for (const std::string& alias : aliases->second) {
      if (alias != function.name) names.emplace_back(alias);
    }
  }
  for (const Pattern& one : patterns_) {
    const auto matches = [&one](const FunctionNames& name) {
      return one.pattern->matches_any(name);
    };
    if (std::none_of(names.begin(), names.end(), matches)) continue;
    const uint64_t bit = uint64_t{1} << one.index;
    matched.patterns |= bit;
    matched.is_named |= one.is_name;
    const bool is_large = size_min_ != 0 ? function.size >= size_min_
                                         : one.is_name || function.may_last ||
                                               function.size >= kPatchedSizeMin;
    if (is_large) matched.chosen |= bit;
  }
  return matched;
}

std::string PatchChoice::name_of(const recorder::FunctionPlan& function) const {
  return function.name.empty() ? absl::StrCat(module_, "+0x", absl::Hex(function.start))
                               : function.name;
}

std::string_view runtime_that_walks_stacks(const recorder::ModuleCode& code) {
  for (const recorder::NamedFunction& function : code.functions) {
    for (const Runtime& runtime : kRuntimes) {
      if (std::string_view(function.name).starts_with(runtime.function)) {
        return runtime.name;
      }
    }
  }
  return {};
}

}  // namespace arctrace::recording
