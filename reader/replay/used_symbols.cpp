#include "reader/replay/used_symbols.hpp"

#include <absl/container/btree_map.h>
#include <absl/container/btree_set.h>
#include <arctrace/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "reader/symbols/data_symbols.hpp"
#include "reader/symbols/demangle.hpp"
#include "reader/symbols/symbolizer.hpp"

namespace arctrace::reader {
namespace {

using ModuleKey = std::pair<std::string, BuildId>;

// The most modules that are searched of those that follow each other at one address.
constexpr int kModulesAtAddressMax = 16;
constexpr size_t kKeysBetweenQuestions = 1024;

// The names and addresses that are looked up in each module.
struct Questions {
  absl::btree_map<ModuleKey, absl::btree_set<uint64_t>> addresses;
  absl::btree_set<std::string> calls;  // of library functions
};

class UsedSymbolFinder {
 public:
  UsedSymbolFinder(const Definitions& definitions, WithSource lines,
                   const SymbolOptions& options)
      : definitions_(definitions), lines_(lines), options_(options) {}

  void ask(ProcessIndex process, uint64_t key) {
    if ((key & ARCTRACE_FRAME_NAME_BIT) == 0) return ask_address(process, key);
    if ((key & ARCTRACE_FRAME_LIBRARY_BIT) == 0) return;
    const auto name = definitions_.name(process, static_cast<uint32_t>(key));
    if (name && !name->empty()) questions_.calls.insert(std::string(*name));
  }

  // Looks up library calls in every module.
  void ask_every_module() {
    if (questions_.calls.empty()) return;
    for (const Process& process : definitions_.processes()) {
      for (const Module& module : process.modules) {
        questions_.addresses[{module.path, module.build_id}];
      }
    }
  }

  UsedSymbols answer(const std::function<bool()>& goes_on) {
    for (const auto& [module, addresses] : questions_.addresses) {
      if (!goes_on()) {
        found_.is_partial = true;
        break;
      }
      answer_module(module, addresses);
    }
    // After half of the modules, a wrong one might seem to be the first with a name.
    if (found_.is_partial) {
      for (ModuleSymbols& module : found_.modules) module.exports.clear();
    }
    return std::move(found_);
  }

 private:
  // Looks up an address in all modules that ever were there.
  void ask_address(ProcessIndex process, uint64_t address) {
    int64_t time_ns = INT64_MIN;
    for (int i = 0; i < kModulesAtAddressMax; ++i) {
      const Module* module = definitions_.module_at(process, address, time_ns);
      if (module == nullptr) return;
      questions_.addresses[{module->path, module->build_id}].insert(address -
                                                                    module->bias);
      if (module->unloaded_ns <= time_ns || module->unloaded_ns == INT64_MAX) return;
      time_ns = module->unloaded_ns;
    }
  }

  void answer_module(const ModuleKey& key, const absl::btree_set<uint64_t>& addresses) {
    const auto& [path, build_id] = key;
    Symbolizer symbolizer(options_);
    ModuleSymbols module{path, build_id, {}, {}};
    for (const uint64_t address : addresses) {
      if (auto function = find(symbolizer, key, address)) {
        module.functions.emplace_back(address, *std::move(function));
      } else {
        ++found_.nameless;
      }
    }
    add_ada_init(symbolizer, key, module);
    for (const std::string& name : questions_.calls) {
      if (symbolizer.exports(definitions_.symbols(), path, build_id, name)) {
        module.exports.push_back(name);
      }
    }
    const std::vector<std::string>& findings = symbolizer.findings();
    std::copy(findings.begin(), findings.end(), std::back_inserter(found_.findings));
    found_.functions += module.functions.size();
    if (module.functions.empty() && module.exports.empty()) return;
    found_.modules.push_back(std::move(module));
  }

  // Adds the function that tells whose names these are, whether it was called or not.
  void add_ada_init(Symbolizer& symbolizer, const ModuleKey& key, ModuleSymbols& module) {
    const auto may_be_ada = [](const auto& function) {
      return language_name_untrusted(function.second.name).language ==
             Language::kPerhapsAda;
    };
    auto& functions = module.functions;
    if (std::none_of(functions.begin(), functions.end(), may_be_ada)) return;
    const auto& [path, build_id] = key;
    std::optional<StoredFunction> init;
    if (const StoredFunction* stored =
            definitions_.symbols().find_ada_init(path, build_id)) {
      init = *stored;
    } else if (const auto symbol = symbolizer.find_ada_init(path, build_id)) {
      init = StoredFunction{symbol->start, std::string(symbol->name), {}, 0};
    }
    if (!init) return;
    const auto next = std::lower_bound(
        functions.begin(), functions.end(), init->start,
        [](const auto& function, uint64_t start) { return function.first < start; });
    if (next != functions.end() && next->first == init->start) return;
    functions.insert(next, {init->start, *init});
  }

  std::optional<StoredFunction> find(Symbolizer& symbolizer, const ModuleKey& key,
                                     uint64_t address) {
    const auto& [path, build_id] = key;
    const StoredFunction* stored = definitions_.symbols().find(path, build_id, address);
    std::optional<StoredFunction> found;
    if (stored != nullptr && !stored->name.empty()) {
      found = *stored;
    } else if (const auto symbol = symbolizer.find_symbol(path, build_id, address)) {
      found = StoredFunction{symbol->start, std::string(symbol->name), {}, 0};
    }
    if (!found || lines_ == WithSource::kNo || found->line != 0) return found;
    if (const auto source =
            symbolizer.resolve(path, build_id, address, WithSource::kYes).source) {
      found->file = source->file;
      found->line = source->line;
    }
    return found;
  }

  const Definitions& definitions_;
  const WithSource lines_;
  const SymbolOptions options_;
  Questions questions_;
  UsedSymbols found_;
};

}  // namespace

UsedSymbols find_used_symbols(const Definitions& definitions, const UsedKeys& keys,
                              WithSource lines, const SymbolOptions& options,
                              const std::function<bool()>& goes_on) {
  UsedSymbolFinder finder(definitions, lines, options);
  size_t asked = 0;
  for (const auto& [process, key] : keys) {
    if (++asked % kKeysBetweenQuestions == 0 && !goes_on()) {
      UsedSymbols nothing;
      nothing.is_partial = true;
      return nothing;
    }
    finder.ask(process, key);
  }
  finder.ask_every_module();
  return finder.answer(goes_on);
}

namespace {

using ModuleKey = std::pair<std::string, BuildId>;
using Variables = absl::btree_map<uint64_t, StoredFunction>;  // by address

std::optional<StoredFunction> find_variable(const Definitions& definitions,
                                            DataSymbols& files, const ModuleKey& module,
                                            uint64_t address, WithSource lines) {
  const auto& [path, build_id] = module;
  StoredFunction found;
  if (const StoredFunction* stored =
          definitions.symbols().find(path, build_id, address)) {
    found = *stored;
  } else {
    const DataSymbols::Variable* variable = files.find(path, build_id, address);
    if (variable == nullptr) return std::nullopt;
    found = {variable->start, variable->name, {}, 0};
  }
  if (lines == WithSource::kNo || found.start >= address) return found;
  return StoredFunction{
      address, files.name_in(path, build_id, found.name, found.start, address), {}, 0};
}

// Adds functions; those that are there already stay as they are.
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
                        WithSource lines, const SymbolOptions& options,
                        const std::function<bool()>& goes_on, UsedSymbols& symbols) {
  DataSymbols files(options);
  absl::btree_map<ModuleKey, Variables> found;
  for (const auto& [process, address] : locks) {
    if (!goes_on()) break;
    // The view of locks finds the module in the same way.
    const Module* module = definitions.module_at(process, address, INT64_MAX - 1);
    if (module == nullptr) continue;
    const ModuleKey key{module->path, module->build_id};
    const uint64_t in_file = address - module->bias;
    if (auto variable = find_variable(definitions, files, key, in_file, lines)) {
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
