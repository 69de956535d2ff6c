// Chooses the functions of a module that `record -P` asks for: by its patterns, and by
// the sizes below which functions are skipped.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/recorder/patch_analysis/module_code.hpp"
#include "src/recorder/patch_analysis/patch_plan.hpp"
#include "src/recording/patterns/function_pattern.hpp"

namespace arctrace::recording {

// Functions that a pattern with wildcards matches are skipped if they are smaller than
// this and neither call (a jump to another function is a call, too), loop nor enter the
// kernel, unless -Z says another size: their calls can be most of the records, and no
// time can be spent in one.
inline constexpr uint64_t kPatchedSizeMin = 64;
// Describes such functions, and the option that includes them.
inline constexpr const char* kSmallFunctionsText =
    "fewer than 64 bytes, without calls and loops, or than -Z says: -Z 1 takes them, too";

class PatchChoice {
 public:
  // `size_min` 0: none was asked for. `module`: the file's name, which stands in the
  // names of functions without one. `library`: its name as patterns ask for it, which may
  // be that of a link; empty: it is the program.
  PatchChoice(uint64_t size_min, std::string module, std::string library)
      : size_min_(size_min), module_(std::move(module)), library_(std::move(library)) {}
  // Adds a pattern, if it is for this module. `index`: the pattern's bit. REQUIRES: a
  // regular expression is valid, `index` < kPatternsMax.
  void add(const std::string& option, size_t index);
  // From now on a function is also asked for by the other names that the module's file
  // has for it, as libc has `close` and `__close`. To be called once, after add().
  void read_aliases_untrusted(const std::string& path);

  struct Matched {
    uint64_t patterns = 0;  // patterns that match the function by its name, one bit each
    uint64_t chosen = 0;    // of these, those for which it is not too small
    bool is_named = false;  // one of them has no wildcards
  };
  Matched match(const recorder::FunctionPlan& function) const;

  // The name by which the function is asked for.
  std::string name_of(const recorder::FunctionPlan& function) const;

 private:
  struct Pattern {
    size_t index;
    bool is_name;     // without wildcards
    bool is_for_all;  // matches all functions
    std::unique_ptr<FunctionPattern> pattern;
  };

  const uint64_t size_min_;
  const std::string module_;
  const std::string library_;
  std::vector<Pattern> patterns_;
  absl::flat_hash_map<uint64_t, std::vector<std::string>> aliases_;  // by file address
};

// The runtime of a program that looks up the return addresses on its stack, or copies
// stacks, such as "OCaml": return addresses of ours would break it. Empty: none is known.
std::string_view runtime_that_walks_stacks(const recorder::ModuleCode& code);

}  // namespace arctrace::recording
