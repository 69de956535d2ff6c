#include "reader/replay/kernel_functions.hpp"

#include <absl/strings/str_cat.h>

#include <array>

#include "reader/trace/format_names.hpp"

namespace arctrace::reader {
namespace {

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
  return found == names.end() ? absl::StrCat("syscall ", number)
                              : std::string(found->second);
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
  return intern(absl::StrCat("signal ", number));
}

FunctionId KernelFunctions::page_fault() { return intern("page fault"); }

FunctionId KernelFunctions::contention() { return intern("contention"); }

FunctionId KernelFunctions::interrupt(uint32_t kind, uint32_t number,
                                      std::string_view name) {
  if (!name.empty()) {
    return intern(interrupt_text(kind, number) + " " + std::string(name));
  }
  const auto [found, added] = interrupts_.try_emplace(uint64_t{kind} << 32 | number);
  if (added) found->second = intern(interrupt_text(kind, number));
  return found->second;
}

}  // namespace arctrace::reader
