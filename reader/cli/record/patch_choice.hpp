// Which functions of a program `record -P` asks for: its patterns, and the sizes below
// which functions are left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reader/cli/options/function_pattern.hpp"
#include "src/recorder/patch_analysis/module_code.hpp"
#include "src/recorder/patch_analysis/patch_plan.hpp"

namespace arctrace::cli {

// Functions that a pattern with wildcards matches are left if they are smaller than this,
// unless -Z says another size: their calls are most of the records, and little is in
// them.
inline constexpr uint64_t kPatchedSizeMin = 64;

class PatchChoice {
 public:
  // `size_min` 0: kPatchedSizeMin. `module`: the file's name, by which functions without
  // a name are called.
  PatchChoice(uint64_t size_min, std::string module)
      : size_min_(size_min), module_(std::move(module)) {}
  // `index`: of its bit. REQUIRES: a regular expression is valid.
  void add(const std::string& text, size_t index);

  struct Matched {
    uint64_t patterns = 0;  // that match the function by its name, one bit each
    uint64_t chosen = 0;    // of these, those for which it is large enough
    bool is_named = false;  // one of them has no wildcards
  };
  Matched match(const FunctionPlan& function) const;

  // The name by which it is asked for.
  std::string name_of(const FunctionPlan& function) const;

 private:
  struct Pattern {
    size_t index;
    bool is_name;  // without wildcards
    std::unique_ptr<FunctionPattern> pattern;
  };

  const uint64_t size_min_;
  const std::string module_;
  std::vector<Pattern> patterns_;
};

// The runtime of a program that looks up the return addresses on its stack, or copies
// stacks, such as "OCaml": return addresses of ours would break it. Empty: none is known.
std::string_view runtime_that_walks_stacks(const ModuleCode& code);

}  // namespace arctrace::cli
