// Sorts a module's functions into those that are patched and those that are skipped, and
// makes images for the shim.
#include "src/recording/patching/patch_request.hpp"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <arctrace/format.h>
#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "reader/symbols/elf_file.hpp"
#include "src/recorder/patch_image/patch_image.hpp"
#include "src/recording/patching/module_code_file.hpp"
#include "src/recording/patching/patch_choice.hpp"
#include "src/shim_protocol/auto_args.hpp"
#include "src/shim_protocol/call_kinds.hpp"
#include "src/shim_protocol/options.hpp"
#include "src/shim_protocol/patching.hpp"

namespace arctrace::recording {

namespace {

// The prefixes of names that libc offers to its other libraries only.
constexpr std::string_view kInternal[] = {
    "__libc_", "__nptl_",      "__nss_",  "__pthread_",  "__res_",
    "__rtld_", "__ctype_init", "__call_", "__register_", "_dl_"};

// Functions that libc calls in a child that has its parent's memory, and functions that
// the shim calls within hooks.
constexpr std::string_view kSkippedInLibc[] = {
    "__errno_location", "chdir",          "clock_gettime",
    "closefrom",        "dup2",           "execl",
    "execle",           "execlp",         "execv",
    "execve",           "execveat",       "execvp",
    "execvpe",          "fchdir",         "fcntl",
    "fcntl64",          "fexecve",        "getauxval",
    "getrlimit",        "getrlimit64",    "pthread_sigmask",
    "pthread_self",     "sched_setparam", "sched_setscheduler",
    "secure_getenv",    "setpgid",        "setsid",
    "sigaction",        "sigprocmask",    "tcsetpgrp"};

bool is_lock_call(std::string_view name) {
  return std::any_of(
      std::begin(shim::kLockCalls), std::end(shim::kLockCalls),
      [name](const shim::LockCall& call) { return name == call.name.text; });
}

bool is_hooked_otherwise(const char* name) {
  return shim::call_kind(name) != shim::CallKind::kUnexamined ||
         shim::frames_only_call_kind(name) != shim::CallKind::kSkipped ||
         is_lock_call(name);
}

bool is_offered(std::string_view name) {
  return std::none_of(std::begin(kInternal), std::end(kInternal),
                      [name](std::string_view begin) { return name.starts_with(begin); });
}

// Calls act(address) for the resolvers among the symbols, whose names are those of the
// functions that they choose.
template <class Act>
void for_each_resolver(const reader::ElfFile& file, const Act& act) {
  file.for_each_dynamic_symbol([&act](const reader::ElfDynamicSymbol& symbol) {
    if (symbol.type == STT_GNU_IFUNC && symbol.address != 0) act(symbol.address);
    return true;
  });
}

}  // namespace

LibraryFunctions::LibraryFunctions(const std::string& path,
                                   const recorder::ModuleCode& code)
    : special_(code.resolvers.begin(), code.resolvers.end()) {
  const auto file = reader::ElfFile::open_untrusted(path);
  if (!file.ok()) return;
  for_each_resolver(*file, [this](uint64_t address) { special_.insert(address); });
  const auto tables = file->function_symbols();
  for (const reader::ElfSymbolTable& table : tables) {
    for (const reader::ElfSymbol& symbol : table.symbols) {
      is_libc_ |= std::string_view(&table.names[symbol.name]) == "gnu_get_libc_version";
    }
  }
  for (const reader::ElfSymbolTable& table : tables) {
    for (const reader::ElfSymbol& symbol : table.symbols) {
      const char* name = &table.names[symbol.name];
      const bool is_skipped =
          is_libc_ && std::find(std::begin(kSkippedInLibc), std::end(kSkippedInLibc),
                                std::string_view(name)) != std::end(kSkippedInLibc);
      if (is_skipped || is_hooked_otherwise(name)) {
        special_.insert(symbol.address);
      }
      if (is_libc_ && symbol.binding != STB_LOCAL && is_offered(name)) {
        offered_.insert(symbol.address);
      }
    }
  }
}

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

// Adds the function to those that are patched or skipped, if a pattern matches it.
// `library`: null for the program.
void add_function(const recorder::FunctionPlan& function,
                  const PatchChoice::Matched& matched, const LibraryFunctions* library,
                  recorder::PatchRequest& request) {
  const bool can = function.verdict == recorder::PatchVerdict::kPatchable;
  if (can && matched.chosen != 0 && library != nullptr &&
      library->is_special(function.start)) {
    request.matched |= matched.chosen;
    recorder::SkippedFunctions& skipped = request.skipped[ARCTRACE_PATCH_SPECIAL];
    ++skipped.count;
    skipped.listed.push_back(function.start);
  } else if (can && matched.chosen != 0) {
    request.matched |= matched.chosen;
    request.functions.push_back(&function);
    if (matched.is_named) request.named.insert(&function);
  } else if (matched.patterns != 0) {
    const auto why =
        can ? uint32_t{ARCTRACE_PATCH_SMALL} : static_cast<uint32_t>(function.verdict);
    recorder::SkippedFunctions& skipped = request.skipped[why];
    ++skipped.count;
    // There are too many others, and nobody misses them. One entry says which library it
    // is.
    if ((library != nullptr && skipped.listed.empty()) ||
        (!can && function.verdict != recorder::PatchVerdict::kPart &&
         function.verdict != recorder::PatchVerdict::kSlotStub)) {
      skipped.listed.push_back(function.start);
    }
  }
}

}  // namespace

recorder::PatchRequest patch_request(const shim::ShimOptions& options,
                                     const PlannedModule& planned,
                                     const std::string& path, const std::string& library,
                                     uint64_t bias) {
  recorder::PatchRequest request;
  request.bias = bias;
  PatchChoice choice =
      choice_of(options, std::filesystem::path(path).filename(), library);
  choice.read_aliases_untrusted(path);
  std::optional<LibraryFunctions> library_functions;
  if (!library.empty()) library_functions.emplace(path, planned.code);
  for (const recorder::FunctionPlan& function : planned.plan.functions) {
    add_function(function, choice.match(function),
                 library_functions ? &*library_functions : nullptr, request);
  }
  return request;
}

namespace {

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

// The file's own name, by which its debug file is found, as long as the name still leads
// to that file.
std::string path_of(const Descriptor& program) {
  std::error_code error;
  std::filesystem::path path = std::filesystem::read_symlink(program.path(), error);
  if (error || !std::filesystem::equivalent(path, program.path(), error)) {
    return program.path();
  }
  return path;
}

std::vector<std::byte> image_for(const Descriptor& program, const Descriptor& maps,
                                 uint64_t bias, const std::string& library) {
  const auto options = std::make_unique<shim::ShimOptions>();
  shim::decode_options(std::getenv(shim::kOptionsVariable), *options);
  const std::string path = path_of(program);
  const auto planned = plan_module(path, true);
  recorder::PatchRequest request;
  request.bias = bias;
  if (!planned.ok())
    return recorder::refused_patch_image(ARCTRACE_PATCH_UNREADABLE, request);
  request = patch_request(*options, *planned, path, library, bias);
  if (!runtime_that_walks_stacks(planned->code).empty()) {
    return recorder::refused_patch_image(ARCTRACE_PATCH_RUNTIME, request);
  }
  const std::optional<std::string> text = maps.read_all();
  if (!text) return recorder::refused_patch_image(ARCTRACE_PATCH_NO_ROOM, request);
  return recorder::make_patch_image(planned->code, request,
                                    recorder::AddressSpace(*text));
}

}  // namespace

int make_patches(const std::vector<std::string>& arguments) {
  constexpr size_t kArguments = 5;
  uint64_t bias = 0;
  if (arguments.size() != kArguments || !absl::SimpleHexAtoi(arguments[3], &bias)) {
    return 2;
  }
  const Descriptor image(arguments[2]);
  const std::vector<std::byte> bytes =
      image_for(Descriptor(arguments[0]), Descriptor(arguments[1]), bias, arguments[4]);
  return image.write_all(bytes) ? 0 : 2;
}

}  // namespace arctrace::recording
