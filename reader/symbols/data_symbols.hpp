// Names of variables, for addresses in the data of recorded modules. The files on this
// machine may not be those that were recorded; names are taken only from files with the
// recorded build-id.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reader/symbols/debug_files.hpp"
#include "reader/symbols/elf_file.hpp"
#include "reader/symbols/variable_types.hpp"

namespace arctrace::reader {

// Opens each module once, when it is first asked for: that reads its symbol tables, or
// those of its debug file. Later look-ups are a binary search. DWARF data is read for
// name_in() only. Not thread-safe.
class DataSymbols {
 public:
  explicit DataSymbols(SymbolOptions options = {});

  struct Variable {
    uint64_t start = 0, size = 0;
    std::string name;  // the linker's
  };
  // Returns the variable that includes the file address (run-time address - bias);
  // nullptr: there is none, or neither the file at `path` nor its debug file is here as
  // it was recorded. An empty build-id matches every file. Valid as long as this object.
  const Variable* find(const std::string& path, const BuildId& build_id,
                       uint64_t address);

  // Returns the name of an address in a variable that begins at `start`: "pool.lock" or
  // "locks[2]", or "pool+0x28" if there is no debug information, which at its beginning
  // is "pool". Demangled, untrusted bytes.
  std::string name_in(const std::string& path, const BuildId& build_id,
                      const std::string& linker_name, uint64_t start, uint64_t address);

 private:
  struct Module {
    std::vector<Variable> variables;  // sorted by address
    std::unique_ptr<VariableTypes> types;
  };

  Module& module(const std::string& path, const BuildId& build_id);
  std::vector<Variable> read_untrusted(const std::string& path,
                                       const BuildId& build_id) const;

  const std::vector<std::string> other_roots_;
  DebugFiles debug_files_;
  absl::flat_hash_map<std::pair<std::string, BuildId>, Module> modules_;
};

}  // namespace arctrace::reader
