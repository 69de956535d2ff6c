// Names for addresses of recorded modules. The files on this machine may not be the ones
// that were recorded: a name is given only if the build-id says that they are.
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

#include "reader/symbols/symbol_file.hpp"

namespace arctrace::reader {

struct ResolvedAddress {
  // Demangled; empty if no symbol has the address. Untrusted bytes: escape control
  // characters before they go to a terminal. Valid as long as the Symbolizer.
  std::string_view function;
  uint64_t start = 0;  // file address of the function; 0 without one
  std::optional<SourceLine> source;
};

enum class WithSource : bool { kNo, kYes };

// Opens each module once, when it is first asked for. Not thread-safe.
class Symbolizer {
 public:
  explicit Symbolizer(SymbolOptions options = {});

  // `path`, `build_id`: as recorded; an empty build-id fits every file. `address`: file
  // address (run-time address - bias).
  //
  // A file that is missing or another one than was recorded is not used: the names then
  // come from the debug file of the recorded build-id, if there is one, and findings()
  // has one line more either way.
  ResolvedAddress resolve(const std::string& path, const BuildId& build_id,
                          uint64_t address, WithSource with_source = WithSource::kNo);

  // Whether the recorded module offers the function `name` (as linkers know it) to
  // others. False too if its file is not there, or another one.
  bool exports(const std::string& path, const BuildId& build_id, std::string_view name);

  // One line per module that could not be used as recorded, in the order of the first
  // resolve(): "/path: build-id differs from the recorded one".
  const std::vector<std::string>& findings() const { return findings_; }

 private:
  struct Loaded {
    std::optional<SymbolFile> file;
    // By start address. A node map: resolve() hands out views of the names.
    absl::node_hash_map<uint64_t, std::string> display_names;
  };

  Loaded load(const std::string& path, const BuildId& build_id);
  std::optional<DebugFile> find_debug_file(const BuildId& build_id) const;

  using Key = std::pair<std::string, BuildId>;  // path, build-id

  DebugFiles debug_files_;
  absl::flat_hash_map<Key, std::unique_ptr<Loaded>> loaded_;
  absl::flat_hash_map<Key, absl::flat_hash_set<std::string>> exports_;
  std::vector<std::string> findings_;
};

}  // namespace arctrace::reader
