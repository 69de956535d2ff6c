#include "reader/replay/lock_symbols.hpp"

#include <absl/container/btree_map.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "reader/symbols/data_symbols.hpp"

namespace arctrace::reader {
namespace {

using ModuleKey = std::pair<std::string, BuildId>;
using Variables = absl::btree_map<uint64_t, StoredFunction>;  // by address

std::optional<StoredFunction> find_variable(const Definitions& definitions,
                                            DataSymbols& files, const ModuleKey& module,
                                            uint64_t address) {
  const auto& [path, build_id] = module;
  if (const StoredFunction* stored =
          definitions.symbols().find(path, build_id, address)) {
    return *stored;
  }
  const DataSymbols::Variable* variable = files.find(path, build_id, address);
  if (variable == nullptr) return std::nullopt;
  return StoredFunction{variable->start, variable->name, {}, 0};
}

// Those that are there already stay as they are.
void add_to(std::vector<std::pair<uint64_t, StoredFunction>>& functions,
            const Variables& variables) {
  std::vector<std::pair<uint64_t, StoredFunction>> all;
  std::set_union(functions.begin(), functions.end(), variables.begin(), variables.end(),
                 std::back_inserter(all),
                 [](const auto& a, const auto& b) { return a.first < b.first; });
  functions = std::move(all);
}

}  // namespace

size_t add_lock_symbols(const Definitions& definitions, const UsedKeys& locks,
                        UsedSymbols& symbols) {
  DataSymbols files;
  absl::btree_map<ModuleKey, Variables> found;
  for (const auto& [process, address] : locks) {
    // As the view of locks finds it.
    const Module* module = definitions.module_at(process, address, INT64_MAX - 1);
    if (module == nullptr) continue;
    const ModuleKey key{module->path, module->build_id};
    const uint64_t in_file = address - module->bias;
    if (auto variable = find_variable(definitions, files, key, in_file)) {
      found[key].emplace(in_file, *std::move(variable));
    }
  }
  size_t count = 0;
  for (const auto& [key, variables] : found) {
    count += variables.size();
    const ModuleKey& wanted = key;
    auto module = std::find_if(symbols.modules.begin(), symbols.modules.end(),
                               [&](const ModuleSymbols& other) {
                                 return ModuleKey(other.path, other.build_id) == wanted;
                               });
    if (module == symbols.modules.end()) {
      module = symbols.modules.insert(module, {key.first, key.second, {}, {}});
    }
    add_to(module->functions, variables);
  }
  return count;
}

}  // namespace arctrace::reader
