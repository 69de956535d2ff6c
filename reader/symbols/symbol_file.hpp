// The symbols of one module: function names, and source lines on request.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reader/symbols/debug_files.hpp"
#include "reader/symbols/elf_file.hpp"
#include "reader/symbols/function_table.hpp"
#include "reader/symbols/line_table.hpp"

namespace arctrace::reader {

// Addresses are file addresses, as st_value and p_vaddr are: run-time address minus load
// bias. Not thread-safe.
class SymbolFile {
 public:
  // Reads the symbols of the ELF file at `path`, of its separate debug file, and of the
  // MiniDebugInfo in its .gnu_debugdata. Errors: NotFound; FailedPrecondition if
  // `build_id` is neither empty nor the file's; others if the file is not a readable ELF
  // file. Damaged parts are ignored.
  static absl::StatusOr<SymbolFile> open_untrusted(const std::string& path,
                                                   const BuildId& build_id,
                                                   const DebugFiles& debug_files);

  const BuildId& build_id() const { return build_id_; }
  const std::vector<LoadSegment>& load_segments() const { return load_segments_; }
  const FunctionTable& functions() const { return functions_; }

  // The first call reads the debug data, at a cost in proportion to its size. The file at
  // the path is not used if it is no longer the one that was opened.
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

// Unpacks the section .gnu_debugdata, which is one .xz stream. Returns nullopt if it is
// damaged, has more than `size_max` bytes, or takes more than 128 MiB of memory (xz -9
// takes 65).
std::optional<std::string> unpack_xz_untrusted(const std::string& packed,
                                               size_t size_max);

}  // namespace arctrace::reader
