#include "src/recording/patching/patch_request.hpp"

#include <arctrace/format.h>

#include <filesystem>
#include <optional>
#include <utility>

#include "src/recording/patching/library_functions.hpp"
#include "src/recording/patching/patch_choice.hpp"

namespace arctrace::recording {
namespace {

PatchChoice choice_of(const shim::ShimOptions& options, std::string module,
                      std::string library) {
  PatchChoice choice(options.size_min, std::move(module), std::move(library));
  for (size_t i = 0; i < options.pattern_count; ++i) {
    if (options.patterns[i].kind == shim::Pattern::Kind::kPatch) {
      choice.add(options.patterns[i].text, i);
    }
  }
  return choice;
}

// Adds the function to those that are patched or left, if a pattern matches it.
// `library`: null for the program.
void add_function(const FunctionPlan& function, const PatchChoice::Matched& matched,
                  const LibraryFunctions* library, PatchRequest& request) {
  const bool can = function.verdict == PatchVerdict::kPatchable;
  if (can && matched.chosen != 0 && library != nullptr &&
      library->is_special(function.start)) {
    request.matched |= matched.chosen;
    LeftFunctions& left = request.left[ARCTRACE_PATCH_SPECIAL];
    ++left.count;
    left.listed.push_back(function.start);
  } else if (can && matched.chosen != 0) {
    request.matched |= matched.chosen;
    request.functions.push_back(&function);
    if (matched.is_named) request.named.insert(&function);
  } else if (matched.patterns != 0) {
    const auto why =
        can ? uint32_t{ARCTRACE_PATCH_SMALL} : static_cast<uint32_t>(function.verdict);
    LeftFunctions& left = request.left[why];
    ++left.count;
    // Of the others there are too many, and nobody misses them. One says which library it
    // is.
    if ((library != nullptr && left.listed.empty()) ||
        (!can && function.verdict != PatchVerdict::kPart &&
         function.verdict != PatchVerdict::kSlotStub)) {
      left.listed.push_back(function.start);
    }
  }
}

}  // namespace

PatchRequest patch_request(const shim::ShimOptions& options, const PlannedModule& planned,
                           const std::string& path, const std::string& library,
                           uint64_t bias) {
  PatchRequest request;
  request.bias = bias;
  PatchChoice choice =
      choice_of(options, std::filesystem::path(path).filename(), library);
  choice.read_aliases_untrusted(path);
  std::optional<LibraryFunctions> left;
  if (!library.empty()) left.emplace(path, planned.code);
  for (const FunctionPlan& function : planned.plan.functions) {
    add_function(function, choice.match(function), left ? &*left : nullptr, request);
  }
  return request;
}

}  // namespace arctrace::recording
