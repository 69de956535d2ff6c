#include "src/recording/patterns/session_functions.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "reader/symbols/elf_file.hpp"
#include "reader/trace/trace.hpp"

namespace arctrace::recording {
namespace {

void add_functions(const std::string& path, bool is_demangled,
                   absl::btree_set<SessionFunction>& functions) {
  const auto file = reader::ElfFile::open_untrusted(path);
  if (!file.ok()) return;
  for (const reader::ElfSymbolTable& table : file->function_symbols()) {
    for (const reader::ElfSymbol& symbol : table.symbols) {
      SessionFunction function{FunctionNames(table.names.c_str() + symbol.name),
                               is_demangled};
      if (!function.linked.empty()) functions.insert(std::move(function));
    }
  }
}

// The files of modules, and whether a process that has them has a demangler.
using ModuleFiles = std::map<std::string, bool>;

bool is_asked_for(const reader::Process& process, const std::vector<pid_t>& pids) {
  return pids.empty() || std::find(pids.begin(), pids.end(),
                                   static_cast<pid_t>(process.pid)) != pids.end();
}

ModuleFiles module_files(const reader::Trace& trace, const std::vector<pid_t>& pids) {
  ModuleFiles files;
  std::map<std::string, bool> exporting;
  for (const reader::Process& process : trace.definitions().processes()) {
    if (!is_asked_for(process, pids)) continue;
    bool has_demangler = false;
    for (const reader::Module& module : process.modules) {
      const auto [known, is_new] = exporting.try_emplace(module.path);
      if (is_new) known->second = exports_demangler(module.path);
      has_demangler |= known->second;
    }
    for (const reader::Module& module : process.modules) {
      files[module.path] |= has_demangler;
    }
  }
  return files;
}

}  // namespace

bool SessionFunction::is_matched_by(const FunctionPattern& pattern) const {
  return is_demangled ? pattern.matches_any(*this)
                      : pattern.matches(linked) || pattern.matches(base);
}

absl::StatusOr<SessionFunctions> functions_of_session(const std::string& path,
                                                      const std::vector<pid_t>& pids) {
  const absl::StatusOr<reader::Trace> trace = reader::Trace::open(path);
  if (!trace.ok()) return trace.status();
  const ModuleFiles files = module_files(*trace, pids);
  SessionFunctions found;
  const reader::Definitions& definitions = trace->definitions();
  for (reader::ProcessIndex i = 0; i < definitions.processes().size(); ++i) {
    if (!is_asked_for(definitions.processes()[i], pids)) continue;
    for (const std::string_view name : definitions.names(i)) found.scopes.emplace(name);
  }
  for (const bool is_demangled : {true, false}) {  // whatever is in both stays demangled
    for (const auto& [file, has_demangler] : files) {
      if (has_demangler != is_demangled) continue;
      found.modules.insert(file.substr(file.rfind('/') + 1));
      add_functions(file, is_demangled, found.functions);
    }
  }
  return found;
}

bool exports_demangler(const std::string& path) {
  const auto file = reader::ElfFile::open_untrusted(path);
  if (!file.ok()) return false;
  const std::vector<std::string> names = file->exported_functions();
  return std::find(names.begin(), names.end(), "__cxa_demangle") != names.end();
}

}  // namespace arctrace::recording
