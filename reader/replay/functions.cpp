// Interns functions and names those of the kernel, and matches them with the
// patterns of a filter.
#include "reader/replay/functions.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <array>

#include "reader/trace/format_names.hpp"

namespace arctrace::reader {

Functions::Functions() {
  intern({}, "", {});
  intern({}, "[unknown]", {});
}

FunctionId Functions::intern(std::string_view module, std::string_view name,
                             CodeLocation location) {
  if (const auto found = ids_.find({module, name}); found != ids_.end()) {
    return found->second;
  }
  const auto id = static_cast<FunctionId>(functions_.size());
  const Function& added = functions_.emplace_back(
      Function{intern_module(module), std::string(name), location,
               location.module == nullptr ? 0 : location.module->hook_kind});
  ids_.emplace(std::pair(added.module, std::string_view(added.name)), id);
  if (added.module.empty() && added.name == "[arctrace]") own_work_ = id;
  return id;
}

std::string_view Functions::intern_module(std::string_view path) {
  if (path.empty()) return {};
  if (const auto found = module_by_path_.find(path); found != module_by_path_.end()) {
    return found->second;
  }
  const std::string_view kept = modules_.emplace_back(path);
  module_by_path_.emplace(kept, kept);
  return kept;
}

namespace {

constexpr std::string_view kPageFault = "page fault";
constexpr std::string_view kContention = "contention";
constexpr std::string_view kSignal = "signal ";
constexpr std::string_view kUnnamedSyscall = "syscall ";

struct Syscall {
  uint32_t number;
  std::string_view name;
};

constexpr auto kSyscalls = std::to_array<Syscall>({
#include "syscall_table.inc"
});

absl::flat_hash_map<uint32_t, std::string_view> names_by_number() {
  absl::flat_hash_map<uint32_t, std::string_view> names;
  for (const Syscall& syscall : kSyscalls) names.emplace(syscall.number, syscall.name);
  return names;
}

}  // namespace

std::string syscall_name(uint32_t number) {
  static const auto& names =
      *new absl::flat_hash_map<uint32_t, std::string_view>(names_by_number());
  const auto found = names.find(number);
  return found == names.end() ? std::string(kUnnamedSyscall) + std::to_string(number)
                              : std::string(found->second);
}

uint32_t kernel_event_of(const Function& function) {
  constexpr std::string_view kPrefix = "K:";
  if (function.module != kKernelModule || !function.name.starts_with(kPrefix)) return 0;
  const std::string_view name = std::string_view(function.name).substr(kPrefix.size());
  if (name == kPageFault) return ARCTRACE_KERNEL_FAULTS;
  if (name == kContention) return ARCTRACE_KERNEL_CONTENTION;
  if (name.starts_with(kSignal)) return ARCTRACE_KERNEL_SIGNALS;
  // This is the form of interrupt_text(), perhaps with a name; no system call's name has
  // a blank but those of which only the number is known.
  const bool is_syscall =
      name.find(' ') == std::string_view::npos || name.starts_with(kUnnamedSyscall);
  return is_syscall ? ARCTRACE_KERNEL_SYSCALLS : ARCTRACE_KERNEL_INTERRUPTS;
}

FunctionId KernelFunctions::intern(std::string_view what) {
  return functions_.intern(kKernelModule, "K:" + std::string(what), {});
}

FunctionId KernelFunctions::syscall(uint32_t number) {
  const auto [found, added] = syscalls_.try_emplace(number);
  if (added) found->second = intern(syscall_name(number));
  return found->second;
}

FunctionId KernelFunctions::signal(uint32_t number) {
  return intern(std::string(kSignal) + std::to_string(number));
}

FunctionId KernelFunctions::page_fault() { return intern(kPageFault); }

FunctionId KernelFunctions::contention() { return intern(kContention); }

FunctionId KernelFunctions::interrupt(uint32_t kind, uint32_t number,
                                      std::string_view name) {
  if (!name.empty()) {
    return intern(interrupt_text(kind, number) + " " + std::string(name));
  }
  const auto [found, added] = interrupts_.try_emplace(uint64_t{kind} << 32 | number);
  if (added) found->second = intern(interrupt_text(kind, number));
  return found->second;
}

bool MadeUpFunctions::is_gap(const Function& function) {
  constexpr std::array kGaps = {kOff,         kFiltered,   kLost,
                                kOverwritten, kInterrupts, kMissing};
  return function.module.empty() &&
         std::find(kGaps.begin(), kGaps.end(), function.name) != kGaps.end();
}

bool FunctionPatterns::match(FunctionId function, const Functions& functions) {
  if (function >= known_.size()) known_.resize(functions.size());
  std::optional<bool>& known = known_[function];
  if (!known.has_value()) known = patterns_.match(functions[function].name);
  return *known;
}

}  // namespace arctrace::reader
