#include "reader/cli/options/session_functions.hpp"

#include <utility>

#include "reader/symbols/elf_file.hpp"
#include "reader/trace/trace.hpp"

namespace arctrace::cli {
namespace {

void add_functions(const std::string& path, absl::btree_set<SessionFunction>& functions) {
  const auto file = reader::ElfFile::open_untrusted(path);
  if (!file.ok()) return;
  for (const reader::ElfSymbolTable& table : file->function_symbols()) {
    for (const reader::ElfSymbol& symbol : table.symbols) {
      SessionFunction function{FunctionNames(table.names.c_str() + symbol.name)};
      if (!function.linked.empty()) functions.insert(std::move(function));
    }
  }
}

}  // namespace

absl::StatusOr<SessionFunctions> functions_of_session(const std::string& path) {
  const absl::StatusOr<reader::Trace> trace = reader::Trace::open(path);
  if (!trace.ok()) return trace.status();
  absl::btree_set<std::string> files;
  for (const reader::Process& process : trace->definitions().processes()) {
    for (const reader::Module& module : process.modules) files.insert(module.path);
  }
  SessionFunctions found;
  for (const std::string& file : files) {
    found.modules.insert(file.substr(file.rfind('/') + 1));
    add_functions(file, found.functions);
  }
  return found;
}

}  // namespace arctrace::cli
