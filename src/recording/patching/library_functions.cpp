#include "src/recording/patching/library_functions.hpp"

#include <elf.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "reader/symbols/elf_file.hpp"
#include "src/shim_protocol/call_kinds.hpp"
#include "src/shim_protocol/lock_calls.hpp"

namespace arctrace::recording {
namespace {

// What begins the names that libc offers to its other libraries only.
constexpr std::string_view kInternal[] = {
    "__libc_", "__nptl_",      "__nss_",  "__pthread_",  "__res_",
    "__rtld_", "__ctype_init", "__call_", "__register_", "_dl_"};

// What libc calls in a child that has its parent's memory, and what the shim calls within
// hooks.
constexpr std::string_view kLeftInLibc[] = {
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
  return std::any_of(std::begin(shim::kLockCalls), std::end(shim::kLockCalls),
                     [name](const shim::LockCall& call) { return name == call.name; });
}

bool is_hooked_otherwise(const char* name) {
  return shim::call_kind(name) != shim::CallKind::kUnexamined ||
         shim::silent_call_kind(name) != shim::CallKind::kUntouched || is_lock_call(name);
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

LibraryFunctions::LibraryFunctions(const std::string& path, const ModuleCode& code)
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
      const bool is_left =
          is_libc_ && std::find(std::begin(kLeftInLibc), std::end(kLeftInLibc),
                                std::string_view(name)) != std::end(kLeftInLibc);
      if (is_left || is_hooked_otherwise(name)) {
        special_.insert(symbol.address);
      }
      if (is_libc_ && symbol.binding != STB_LOCAL && is_offered(name)) {
        offered_.insert(symbol.address);
      }
    }
  }
}

}  // namespace arctrace::recording
