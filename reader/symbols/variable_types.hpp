// The members of a module's variables, by its DWARF data.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "reader/symbols/debug_files.hpp"
#include "reader/symbols/elf_file.hpp"

namespace arctrace::reader {

// Keeps the data open. Not thread-safe.
class VariableTypes {
 public:
  VariableTypes();
  VariableTypes(const VariableTypes&) = delete;
  VariableTypes& operator=(const VariableTypes&) = delete;
  ~VariableTypes();

  // Reads which variables the DWARF data of the module at `path` describes, or that of
  // its debug file. An empty build-id matches every file. Finds none if there is no such
  // data. The time is proportional to the size of the data, and bounded.
  void read_untrusted(const std::string& path, const BuildId& build_id,
                      const DebugFiles& debug_files);

  // Returns what stands at an offset in the variable that begins at the file address
  // `start`: ".lock", "[2].table.lock". Members whose names begin with '_' are those of a
  // library's own types, and are not named. nullopt: it is not known.
  std::optional<std::string> member_at(uint64_t start, uint64_t offset);

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

}  // namespace arctrace::reader
