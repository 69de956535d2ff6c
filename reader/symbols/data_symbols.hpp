// Names of variables, for addresses in the data of recorded modules.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "reader/symbols/elf_file.hpp"

namespace arctrace::reader {

// Opens each module once, when it is first asked for: that reads its symbol tables. Later
// questions are a binary search. Not thread-safe.
class DataSymbols {
 public:
  // The variable that includes the file address (run-time address - bias), as "pool", or
  // "pool+0x28" if it does not begin there; demangled, untrusted bytes. Empty: there is
  // none, or the file at `path` is missing or not the recorded one. An empty build-id
  // matches every file.
  std::string name_at(const std::string& path, const BuildId& build_id, uint64_t address);

  struct Variable {
    uint64_t start, size;
    std::string name;  // the linker's
  };
  // The same variable; nullptr: there is none. Valid as long as this object.
  const Variable* find(const std::string& path, const BuildId& build_id,
                       uint64_t address);

  // The name of an address in a variable which begins at `start`.
  static std::string name_in(const std::string& linker_name, uint64_t start,
                             uint64_t address);

 private:
  using Variables = std::vector<Variable>;  // sorted by address

  static Variables read_untrusted(const std::string& path, const BuildId& build_id);

  absl::flat_hash_map<std::pair<std::string, BuildId>, Variables> modules_;
};

}  // namespace arctrace::reader
