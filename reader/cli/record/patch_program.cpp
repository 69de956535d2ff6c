#include "reader/cli/record/patch_program.hpp"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "reader/cli/options/function_pattern.hpp"
#include "reader/cli/record/module_code_file.hpp"
#include "src/recorder/patch_image/address_space.hpp"
#include "src/recorder/patch_image/patch_image.hpp"
#include "src/shim_protocol/environment.hpp"
#include "src/shim_protocol/options.hpp"
#include "src/shim_protocol/patch_table.hpp"

namespace arctrace::cli {
namespace {

// Functions that a pattern with wildcards matches are left if they are smaller than this,
// unless -Z says another size: their calls are most of the records, and little is in
// them.
constexpr uint64_t kPatchedSizeMin = 64;

// Programs that look up return addresses of the stack's frames, or copy stacks: a return
// address of ours in a frame would break them. A name that begins so is one of theirs.
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

class Descriptor {
 public:
  explicit Descriptor(const std::string& text) {
    if (!absl::SimpleAtoi(text, &number_)) number_ = -1;
  }
  int number() const { return number_; }
  std::string path() const { return absl::StrCat("/proc/self/fd/", number_); }

  std::optional<std::string> read_all() const {
    std::string all;
    char buffer[1 << 14];
    for (;;) {
      const ssize_t size = ::read(number_, buffer, sizeof buffer);
      if (size < 0) return std::nullopt;
      if (size == 0) return all;
      all.append(buffer, static_cast<size_t>(size));
    }
  }

  bool write_all(std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t written = ::write(number_, bytes.data(), bytes.size());
      if (written <= 0) return false;
      bytes = bytes.subspan(static_cast<size_t>(written));
    }
    return true;
  }

 private:
  int number_ = -1;
};

// The file's own name, by which its debug file is found, as long as it is still that
// file.
std::string path_of(const Descriptor& program) {
  std::error_code error;
  std::filesystem::path path = std::filesystem::read_symlink(program.path(), error);
  if (error || !std::filesystem::equivalent(path, program.path(), error)) {
    return program.path();
  }
  return path;
}

std::string_view runtime_of(const ModuleCode& code) {
  for (const NamedFunction& function : code.functions) {
    for (const Runtime& runtime : kRuntimes) {
      if (std::string_view(function.name).starts_with(runtime.function)) {
        return runtime.name;
      }
    }
  }
  return {};
}

// The patterns of -P.
class Chooser {
 public:
  explicit Chooser(const shim::ShimOptions& options) : size_min_(options.size_min) {
    for (size_t i = 0; i < options.pattern_count; ++i) {
      if (options.patterns[i].kind != shim::Pattern::Kind::kPatch) continue;
      const std::string text = options.patterns[i].text;
      const bool is_name = text.find_first_of("*?[\\") == std::string::npos &&
                           !text.starts_with(shim::kRegexMark);
      patterns_.push_back({i, is_name, std::make_unique<FunctionPattern>(text)});
    }
  }

  bool chooses(const FunctionPlan& function, const std::string& module) {
    const FunctionNames names(function.name.empty()
                                  ? absl::StrCat(module, "+0x", absl::Hex(function.start))
                                  : function.name);
    bool found = false;
    for (const Patterns& one : patterns_) {
      if (!is_large_enough(function, one) || !one.pattern->matches_any(names)) continue;
      matched_ |= uint64_t{1} << one.index;
      found = true;
    }
    return found;
  }

  uint64_t matched() const { return matched_; }

 private:
  struct Patterns {
    size_t index;
    bool is_name;  // without wildcards
    std::unique_ptr<FunctionPattern> pattern;
  };

  bool is_large_enough(const FunctionPlan& function, const Patterns& one) const {
    if (size_min_ != 0) return function.size >= size_min_;
    return one.is_name || function.size >= kPatchedSizeMin;
  }

  const uint64_t size_min_;
  std::vector<Patterns> patterns_;
  uint64_t matched_ = 0;
};

std::vector<std::byte> image_for(const Descriptor& program, const Descriptor& maps,
                                 uint64_t bias) {
  const auto options = std::make_unique<shim::ShimOptions>();
  shim::decode_options(std::getenv(shim::kOptionsVariable), *options);
  Chooser chooser(*options);
  const std::string path = path_of(program);
  const auto planned = plan_module(path, true);
  if (!planned.ok()) {
    return refused_patch_image(shim::PatchRefusal::kUnreadable, "", 0);
  }
  const std::string module = std::filesystem::path(path).filename();
  PatchRequest request;
  request.bias = bias;
  for (const FunctionPlan& function : planned->plan.functions) {
    if (function.verdict != PatchVerdict::kPatchable) continue;
    if (chooser.chooses(function, module)) request.functions.push_back(&function);
  }
  request.matched = chooser.matched();
  if (const std::string_view runtime = runtime_of(planned->code); !runtime.empty()) {
    return refused_patch_image(shim::PatchRefusal::kRuntime, runtime, request.matched);
  }
  const std::optional<std::string> text = maps.read_all();
  if (!text) return refused_patch_image(shim::PatchRefusal::kNoRoom, "", 0);
  return make_patch_image(planned->code, request, AddressSpace(*text));
}

}  // namespace

int make_patches(const std::vector<std::string>& arguments) {
  constexpr size_t kArguments = 4;
  uint64_t bias = 0;
  if (arguments.size() != kArguments || !absl::SimpleHexAtoi(arguments[3], &bias)) {
    return 2;
  }
  const Descriptor image(arguments[2]);
  const std::vector<std::byte> bytes =
      image_for(Descriptor(arguments[0]), Descriptor(arguments[1]), bias);
  return image.write_all(bytes) ? 0 : 2;
}

}  // namespace arctrace::cli
