// Counts NOP areas that the shim cannot use, and finds patterns of -P and conditions of
// --snapshot-when that cannot match.
#include "src/recording/patching/patch_check.hpp"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "reader/render/shell_text.hpp"
#include "reader/symbols/elf_file.hpp"
#include "reader/trace/format_names.hpp"
#include "reader/trace/text_escape.hpp"
#include "src/base/near_names.hpp"
#include "src/recorder/patch_analysis/unwind_table.hpp"
#include "src/recording/patching/module_code_file.hpp"
#include "src/recording/patching/patch_choice.hpp"
#include "src/recording/patterns/arg_spec.hpp"
#include "src/recording/patterns/function_pattern.hpp"
#include "src/recording/patterns/program_functions.hpp"
#include "src/shim_protocol/options.hpp"
#include "src/shim_protocol/patching.hpp"

namespace arctrace::recording {

namespace {

constexpr char kPatchableEntries[] = "__patchable_function_entries";

// The section's addresses; empty: there is none.
recorder::CodeRange section_range(const reader::ElfFile& elf) {
  recorder::CodeRange range{};
  elf.for_each_section([&range](const reader::ElfSection& section) {
    if (std::string_view(section.name) != kPatchableEntries ||
        section.size >= uint64_t{1} << 32) {
      return true;
    }
    range = {section.address, section.address + section.size};
    return false;
  });
  return range;
}

// The parts of this type in `bytes`, one after the other.
template <class Part>
std::vector<Part> parts_of(const std::string& bytes) {
  std::vector<Part> parts(bytes.size() / sizeof(Part));
  if (!parts.empty())
    std::memcpy(parts.data(), bytes.data(), parts.size() * sizeof(Part));
  return parts;
}

// The section's contents when the program is loaded.
std::vector<uint64_t> addresses_of_entries(const reader::ElfFile& elf) {
  const std::string words = elf.section_bytes(kPatchableEntries).value_or("");
  std::vector<uint64_t> addresses = parts_of<uint64_t>(words);
  const recorder::CodeRange range = section_range(elf);
  const std::string relocations = elf.section_bytes(".rela.dyn").value_or("");
  for (const Elf64_Rela& relocation : parts_of<Elf64_Rela>(relocations)) {
    if (ELF64_R_TYPE(relocation.r_info) != R_X86_64_RELATIVE ||
        !range.contains(relocation.r_offset)) {
      continue;
    }
    const uint64_t i = (relocation.r_offset - range.start) / sizeof(uint64_t);
    if (i < addresses.size()) addresses[i] = static_cast<uint64_t>(relocation.r_addend);
  }
  return addresses;
}

// Whether an entry of the table is about the function whose NOP area begins at `address`,
// or ends before the function.
bool has_begin(const recorder::ModuleCode& code, const recorder::UnwindTable& unwind,
               uint64_t address) {
  constexpr std::byte kNop{0x90};
  if (unwind.find(address) != nullptr) return true;
  for (const std::byte byte : code.bytes_at(address)) {
    if (byte != kNop) return false;
    if (unwind.find(++address) != nullptr) return true;
  }
  return false;
}

}  // namespace

PatchableEntries count_patchable_entries_untrusted(const std::string& path) {
  PatchableEntries entries;
  const auto elf = reader::ElfFile::open_untrusted(path);
  if (!elf.ok() || !elf->has_section(kPatchableEntries)) return entries;
  const std::vector<uint64_t> addresses = addresses_of_entries(*elf);
  entries.all = addresses.size();
  if (elf->has_section(".symtab")) return entries;
  const auto module = read_module_code_untrusted(path);
  if (!module.ok()) return entries;
  const recorder::UnwindTable unwind(module->code);
  entries.without_begin = static_cast<size_t>(std::count_if(
      addresses.begin(), addresses.end(),
      [&](uint64_t address) { return !has_begin(module->code, unwind, address); }));
  return entries;
}

namespace {

// A module that imports one of these may execute a program that has the functions.
constexpr std::string_view kExecutors[] = {
    "execl",   "execle",      "execlp",       "execv",  "execve", "execveat", "execvp",
    "execvpe", "posix_spawn", "posix_spawnp", "system", "popen",  "fexecve"};
// A module that imports one of these may do so, too, but many libraries import them that
// execute nothing.
constexpr std::string_view kPossibleExecutors[] = {"syscall", "dlopen", "dlmopen"};
// These libraries define them.
constexpr std::string_view kLibcs[] = {"libc.so", "libc-", "libpthread", "ld-linux"};
constexpr std::string_view kCompiledInHooks[] = {"__cyg_profile_func_enter", "__fentry__",
                                                 "mcount", "_mcount"};

// The names that a module imports or exports.
class DynamicNames {
 public:
  explicit DynamicNames(const std::string& path) {
    const auto file = reader::ElfFile::open_untrusted(path);
    if (!file.ok()) return;
    std::vector<std::string> names = absl::StrSplit(
        file->section_bytes(".dynstr").value_or(""), '\0', absl::SkipEmpty());
    names_ = std::move(names);
  }

  template <class Names>
  bool has_any(const Names& wanted) const {
    return std::any_of(std::begin(wanted), std::end(wanted), [&](std::string_view name) {
      return std::find(names_.begin(), names_.end(), name) != names_.end();
    });
  }
  bool is_empty() const { return names_.empty(); }

 private:
  std::vector<std::string> names_;
};

bool is_libc(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename();
  return std::any_of(std::begin(kLibcs), std::end(kLibcs),
                     [&name](std::string_view libc) { return name.starts_with(libc); });
}

// Whether the program can execute another one, as far as its own and its libraries'
// imports show.
bool may_execute(const std::string& path, const DynamicNames& names) {
  if (names.is_empty() || names.has_any(kExecutors) ||
      names.has_any(kPossibleExecutors)) {
    return true;
  }
  const std::vector<std::string> libraries = libraries_of(path);
  return std::any_of(libraries.begin(), libraries.end(), [](const std::string& library) {
    return !is_libc(library) && DynamicNames(library).has_any(kExecutors);
  });
}

bool is_for_all(const std::string& pattern) { return pattern == "." || pattern == "*"; }

bool is_for_library(const std::string& pattern) {
  return !shim::split_patch_pattern(pattern).library.empty();
}

// A pattern for libraries is not checked, because it is not known beforehand which of
// them the program loads.
bool is_not_checked(const std::string& pattern) {
  return is_for_all(pattern) || is_for_library(pattern);
}

// The facts about a pattern that chooses no function.
struct Unmatched {
  const recorder::FunctionPlan* skipped =
      nullptr;             // a function that matches, and cannot be patched
  bool has_small = false;  // other matching functions are too small
};

std::string problem_text(const std::string& pattern, const Unmatched& known,
                         const std::string& program, const recorder::PatchPlan& plan,
                         const PatchChoice& choice) {
  const std::string shown = reader::escaped(pattern);
  if (known.has_small) {
    return absl::StrCat("-P ", shown, " matches only functions of ", program, " of ",
                        kSmallFunctionsText);
  }
  if (known.skipped != nullptr) {
    const auto verdict = static_cast<uint32_t>(known.skipped->verdict);
    return absl::StrCat(
        "-P ", shown, ": ",
        reader::escaped(FunctionNames(choice.name_of(*known.skipped)).copy),
        " cannot be patched: ", reader::patch_verdict_text(verdict).reason);
  }
  std::vector<std::string> names;
  for (const recorder::FunctionPlan& function : plan.functions) {
    if (!function.name.empty()) names.push_back(FunctionNames(function.name).brief);
  }
  return absl::StrCat("no function of ", program, " matches -P ", shown,
                      near_names(plain_part(pattern), names));
}

}  // namespace

std::vector<std::string> patch_problems(const CallFilterOptions& options,
                                        const std::string& command) {
  const std::vector<std::string>& patterns = options.patch;
  // Too many patterns are reported where they are encoded.
  if (std::all_of(patterns.begin(), patterns.end(), is_not_checked) ||
      patterns.size() > shim::kPatternsMax) {
    return {};
  }
  const std::string path = find_program(command);
  const auto planned = plan_module(path, true);
  if (!planned.ok()) return {};
  const DynamicNames names(path);
  if (names.has_any(kCompiledInHooks) ||
      !runtime_that_walks_stacks(planned->code).empty()) {
    return {};  // the end of the recording reports that
  }
  PatchChoice choice(options.size.value_or(0), std::filesystem::path(path).filename(),
                     "");
  for (size_t i = 0; i < patterns.size(); ++i) {
    choice.add(is_for_all(patterns[i]) ? "*" : patterns[i], i);
  }
  choice.read_aliases_untrusted(path);
  uint64_t chosen = 0;
  std::vector<Unmatched> known(patterns.size());
  for (const recorder::FunctionPlan& function : planned->plan.functions) {
    const PatchChoice::Matched matched = choice.match(function);
    const bool can = function.verdict == recorder::PatchVerdict::kPatchable;
    if (can) chosen |= matched.chosen;
    for (size_t i = 0; i < known.size(); ++i) {
      if ((matched.patterns >> i & 1) == 0) continue;
      if (can) known[i].has_small = true;
      if (!can && known[i].skipped == nullptr) known[i].skipped = &function;
    }
  }
  std::vector<std::string> problems;
  for (size_t i = 0; i < known.size(); ++i) {
    if ((chosen >> i & 1) != 0 || is_not_checked(patterns[i])) continue;
    problems.push_back(problem_text(patterns[i], known[i], reader::escaped(command),
                                    planned->plan, choice));
  }
  // This is checked last, because the program's loader is run for it.
  if (!problems.empty() && may_execute(path, names)) problems.clear();
  return problems;
}

namespace {

bool has_hooks_of_compiler(const reader::ElfFile& file, const DynamicNames& names) {
  return file.has_section(kPatchableEntries) || file.has_section("xray_instr_map") ||
         names.has_any(kCompiledInHooks);
}

// The functions of a program and of its libraries, for the conditions on their calls.
class ConditionCheck {
 public:
  // Each argument must outlive this object.
  ConditionCheck(const CallFilterOptions& options, const std::string& path,
                 const reader::ElfFile& file)
      : options_(options), path_(path), names_(path) {
    has_hooks_ = has_hooks_of_compiler(file, names_);
    for (const reader::ElfSymbolTable& table : file.function_symbols()) {
      for (const reader::ElfSymbol& symbol : table.symbols) {
        own_.emplace_back(table.names.c_str() + symbol.name);
      }
    }
    file.for_each_dynamic_symbol([this](const reader::ElfDynamicSymbol& symbol) {
      if (!symbol.is_defined) imported_.emplace_back(symbol.name);
      return true;
    });
  }

  // Why no call of the program will be one of a function that the pattern matches, as far
  // as that is known; empty: one may be.
  std::string why_none(const std::string& text) {
    const FunctionPattern pattern(text);
    if (find(imported_, pattern) != nullptr) return "";
    const FunctionNames* const own = find(own_, pattern);
    if (own == nullptr) return in_libraries(pattern) ? "" : no_function(pattern);
    if (has_hooks_) return "";
    if (options_.patch.empty()) {
      return absl::StrCat(reader::escaped(own->brief),
                          " was not built with hooks: try -P ", reader::shell_word(text));
    }
    return why_not_patched(text, *own);
  }

 private:
  static bool is_patchable(const recorder::FunctionPlan& function) {
    return function.verdict == recorder::PatchVerdict::kPatchable;
  }

  static const FunctionNames* find(const std::vector<FunctionNames>& functions,
                                   const FunctionPattern& pattern) {
    const auto found =
        std::find_if(functions.begin(), functions.end(),
                     [&](const auto& names) { return pattern.matches_any(names); });
    return found == functions.end() ? nullptr : &*found;
  }

  bool in_libraries(const FunctionPattern& pattern) {
    const std::vector<std::string> libraries = libraries_of(path_);
    return std::any_of(libraries.begin(), libraries.end(), [&](const auto& library) {
      const auto file = reader::ElfFile::open_untrusted(library);
      if (!file.ok()) return false;
      const std::vector<std::string> exported = file->exported_functions();
      return std::any_of(exported.begin(), exported.end(), [&](const auto& name) {
        return pattern.matches_any(FunctionNames(name));
      });
    });
  }

  std::string no_function(const FunctionPattern& pattern) const {
    std::vector<std::string> names;
    for (const FunctionNames& function : own_) names.push_back(function.brief);
    return absl::StrCat(
        "no function of the program or of its libraries matches, and "
        "what it executes is not examined",
        near_names(plain_part(pattern.text()), names));
  }

  // The same by the analysis of the program, which -P needs anyway.
  std::string why_not_patched(const std::string& text, const FunctionNames& own) const {
    const auto planned = plan_module(path_, true);
    if (!planned.ok()) return "";
    const std::string module = std::filesystem::path(path_).filename();
    PatchChoice wanted(1, module, "");
    wanted.add(text, 0);
    wanted.read_aliases_untrusted(path_);
    PatchChoice choice(options_.size.value_or(0), module, "");
    for (size_t i = 0; i < options_.patch.size(); ++i) {
      choice.add(is_for_all(options_.patch[i]) ? "*" : options_.patch[i], i);
    }
    choice.read_aliases_untrusted(path_);
    // Parts of a function may not be patched, such as its cold one, if it can.
    std::string why_not, why_small;
    bool can_be = false;
    for (const recorder::FunctionPlan& function : planned->plan.functions) {
      if (wanted.match(function).patterns == 0) continue;
      const PatchChoice::Matched matched = choice.match(function);
      if (matched.chosen != 0 && is_patchable(function)) return "";
      const std::string name =
          reader::escaped(FunctionNames(wanted.name_of(function)).copy);
      if (!is_patchable(function)) {
        why_not = absl::StrCat(
            name, " cannot be patched: ",
            reader::patch_verdict_text(static_cast<uint32_t>(function.verdict)).reason);
      } else if (matched.patterns != 0) {
        why_small =
            absl::StrCat(name, " is not patched, as functions of ", kSmallFunctionsText);
      } else {
        can_be = true;
      }
    }
    if (!why_small.empty()) return why_small;
    if (!can_be && !why_not.empty()) return why_not;
    return absl::StrCat(reader::escaped(own.brief), " is not patched: try -P ",
                        reader::shell_word(text));
  }

  const CallFilterOptions& options_;
  const std::string& path_;
  const DynamicNames names_;
  bool has_hooks_ = false;  // compilers made some
  std::vector<FunctionNames> own_, imported_;
};

}  // namespace

std::vector<std::string> unmet_conditions(const CallFilterOptions& options,
                                          const std::string& program) {
  std::vector<std::string> lines;
  if (options.snapshot_when.empty()) return lines;
  const std::string path = find_program(program);
  const auto file = reader::ElfFile::open_untrusted(path);
  if (!file.ok()) return lines;
  ConditionCheck check(options, path, *file);
  for (const std::string& text : options.snapshot_when) {
    const auto condition = std::get<SnapshotCondition>(parse_snapshot_condition(text));
    const std::string why = check.why_none(condition.pattern);
    if (why.empty()) continue;
    lines.push_back(absl::StrCat("no call of ", reader::escaped(program),
                                 " will meet --snapshot-when \"", reader::escaped(text),
                                 "\": ", why));
  }
  return lines;
}

}  // namespace arctrace::recording
