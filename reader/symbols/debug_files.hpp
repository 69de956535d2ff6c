// Where the separate debug file of a module is: in the local places that GDB and
// elfutils search, and on debuginfod servers if the user wants that.
#pragma once

#include <optional>
#include <string>

#include "reader/symbols/elf_file.hpp"

namespace arctrace::reader {

struct SymbolOptions {
  std::string debug_root = "/usr/lib/debug";
  // Ask the servers in DEBUGINFOD_URLS. Needs libdebuginfod.so.1 at run time; without it
  // nothing is downloaded.
  bool allow_download = false;
};

struct DebugFile {
  std::string path;
  ElfFile elf;
};

// All answers are checked: they have the build-id that was asked for, or the CRC.
class DebugFiles {
 public:
  explicit DebugFiles(SymbolOptions options);

  // ROOT/.build-id/xx/yyyy.debug
  std::optional<DebugFile> find_by_build_id_untrusted(const BuildId& build_id) const;

  // The debug file of the module `elf` at `path`: by its build-id, then by the name in
  // its .gnu_debuglink: beside it, in .debug/ beside it, under ROOT at the same path.
  std::optional<DebugFile> find_untrusted(const std::string& path,
                                          const ElfFile& elf) const;

  // The file that dwz moved common DWARF data to, named by the .gnu_debugaltlink of the
  // debug file at `path`.
  std::optional<DebugFile> find_supplementary_untrusted(const std::string& path,
                                                        const std::string& name,
                                                        const BuildId& build_id) const;

  // Takes as long as the servers take. Nothing unless options.allow_download.
  std::optional<DebugFile> download_untrusted(const BuildId& build_id) const;

 private:
  std::string build_id_path(const BuildId& build_id) const;

  SymbolOptions options_;
};

}  // namespace arctrace::reader
