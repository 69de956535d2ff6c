// What one module can tell about its code: function names now, source lines on request.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reader/symbols/debug_files.hpp"
#include "reader/symbols/elf_file.hpp"
#include "reader/symbols/function_table.hpp"
#include "reader/symbols/line_table.hpp"

namespace arctrace::reader {

// Addresses are file addresses: st_value, p_vaddr; at run time the load bias comes on
// top. Not thread-safe.
class SymbolFile {
 public:
  // Reads the symbols of the ELF file at `path`, of its separate debug file, and of the
  // MiniDebugInfo in its .gnu_debugdata. Errors: not found; FailedPrecondition if
  // `build_id` is not empty and not the file's; others if it is no readable ELF file.
  // Damage in parts of it costs those parts.
  static absl::StatusOr<SymbolFile> open_untrusted(const std::string& path,
                                                   const BuildId& build_id,
                                                   const DebugFiles& debug_files);

  const BuildId& build_id() const { return build_id_; }
  const std::vector<LoadSegment>& load_segments() const { return load_segments_; }
  const FunctionTable& functions() const { return functions_; }

  // The first call reads the debug data, which takes time and memory in proportion. If
  // the file at the path is no longer the one that was opened, it is not used.
  std::optional<SourceLine> find_line(uint64_t address);

 private:
  SymbolFile(std::string path, const DebugFiles& debug_files);
  std::optional<LineTable> open_lines() const;

  std::string path_;
  DebugFiles debug_files_;
  BuildId build_id_;
  std::vector<LoadSegment> load_segments_;
  FunctionTable functions_;
  bool lines_tried_ = false;
  std::optional<LineTable> lines_;
};

}  // namespace arctrace::reader
