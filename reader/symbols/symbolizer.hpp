// Names for addresses of functions in recorded modules, demangled. The files on this
// machine may not be those that were recorded; names are taken only from files with the
// recorded build-id.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <absl/container/node_hash_map.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reader/symbols/demangle.hpp"
#include "reader/symbols/elf_file.hpp"
#include "reader/symbols/symbol_file.hpp"
#include "reader/trace/stored_symbols.hpp"

namespace arctrace::reader {

struct ResolvedAddress {
  // Demangled; empty if no symbol includes the address. Untrusted bytes: escape them
  // before they go to a terminal. Valid as long as the Symbolizer.
  std::string_view function;
  uint64_t start = 0;  // file address of the function; 0 if there is none
  std::optional<SourceLine> source;
};

enum class WithSource : bool { kNo, kYes };

// Finds symbols of addresses. Opens each module once, when it is first asked for: that
// reads its symbol tables. Later look-ups are a binary search. Not thread-safe.
class Symbolizer {
 public:
  explicit Symbolizer(SymbolOptions options = {});

  // `path` and `build_id` are the recorded ones; an empty build-id matches every file.
  // `address` is a file address (run-time address - bias).
  //
  // If the file is missing, or not the recorded one, the names come from the debug file
  // of the recorded build-id, if there is one. Either way findings() gets another line.
  ResolvedAddress resolve(const std::string& path, const BuildId& build_id,
                          uint64_t address, WithSource with_source = WithSource::kNo);

  // Does the same, but the trace's own symbols, `stored`, come first: they are the names
  // at the time of the recording, whatever file is at the path now.
  ResolvedAddress resolve(const StoredSymbols& stored, const std::string& path,
                          const BuildId& build_id, uint64_t address,
                          WithSource with_source = WithSource::kNo);

  // Finds the symbol that includes the address, with its linker's name, as resolve()
  // does. Its name is valid as long as the Symbolizer.
  std::optional<FunctionSymbol> find_symbol(const std::string& path,
                                            const BuildId& build_id, uint64_t address);

  // Finds the module's function that prepares Ada's packages, which tells that its names
  // are Ada's.
  std::optional<FunctionSymbol> find_ada_init(const std::string& path,
                                              const BuildId& build_id);

  // Whether the recorded module exports the function with the linker's name `name`.
  // Returns false also if its file is missing, or not the recorded one.
  bool exports(const std::string& path, const BuildId& build_id, std::string_view name);

  bool exports(const StoredSymbols& stored, const std::string& path,
               const BuildId& build_id, std::string_view name);

  // One line for each module that could not be used as recorded, in the order of the
  // first calls of resolve(): "/path: build-id differs from the recorded one".
  const std::vector<std::string>& findings() const { return findings_; }

 private:
  struct Loaded {
    std::optional<SymbolFile> file;
    // By start address. A node map: resolve() hands out views of the names.
    absl::node_hash_map<uint64_t, std::string> display_names;
    std::optional<ShowsAda> ada;  // nullopt: not known yet
  };

  static ShowsAda shows_ada(Loaded& module);
  Loaded& loaded(const std::string& path, const BuildId& build_id);
  Loaded load(const std::string& path, const BuildId& build_id);
  absl::StatusOr<SymbolFile> open_module(const std::string& path,
                                         const BuildId& build_id) const;
  std::optional<DebugFile> find_debug_file(const BuildId& build_id) const;

  using Key = std::pair<std::string, BuildId>;  // path, build-id

  const std::vector<std::string> other_roots_;
  DebugFiles debug_files_;
  absl::flat_hash_map<Key, std::unique_ptr<Loaded>> loaded_;
  absl::flat_hash_map<Key, absl::flat_hash_set<std::string>> exports_;
  // The demangled names of stored symbols, by their linker's names.
  absl::node_hash_map<std::string, std::string> stored_names_;
  absl::node_hash_map<std::string, std::string> stored_ada_names_;
  std::vector<std::string> findings_;
};

}  // namespace arctrace::reader
