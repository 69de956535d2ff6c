// Finds the separate debug file of a module: in the local directories that GDB and
// elfutils search, and on debuginfod servers if the user permits that.
#pragma once

#include <optional>
#include <string>

#include "reader/symbols/elf_file.hpp"

namespace arctrace::reader {

struct SymbolOptions {
  std::string debug_root = "/usr/lib/debug";
  // Whether the servers in DEBUGINFOD_URLS may be asked. This needs libdebuginfod.so.1 at
  // run time; without it nothing is downloaded.
  bool allow_download = false;
  // Directories below which modules are looked for that are not, with their build-id, at
  // their paths: the root directories of processes in containers.
  std::vector<std::string> other_roots = {};
};

struct DebugFile {
  std::string path;
  ElfFile elf;
};

// Every file that is returned has the build-id that was asked for, or the CRC. Each
// search reads files; nothing is cached.
class DebugFiles {
 public:
  explicit DebugFiles(SymbolOptions options);

  // Opens ROOT/.build-id/xx/yyyy.debug.
  std::optional<DebugFile> find_by_build_id_untrusted(const BuildId& build_id) const;

  // Opens the debug file of the module `elf` at `path`: by its build-id, then by the name
  // in its .gnu_debuglink, in the module's directory, in .debug/ there, and under ROOT at
  // the same path.
  std::optional<DebugFile> find_untrusted(const std::string& path,
                                          const ElfFile& elf) const;

  // Opens the file to which dwz moved common DWARF data, named by the .gnu_debugaltlink
  // of the debug file at `path`.
  std::optional<DebugFile> find_supplementary_untrusted(const std::string& path,
                                                        const std::string& name,
                                                        const BuildId& build_id) const;

  // Blocks for as long as the servers take. Returns nullopt unless
  // options.allow_download.
  std::optional<DebugFile> download_untrusted(const BuildId& build_id) const;

 private:
  std::string build_id_path(const BuildId& build_id) const;

  SymbolOptions options_;
};

// Downloads the debug file of `build_id` from the debuginfod servers in DEBUGINFOD_URLS
// into libdebuginfod's cache, and returns its path there. nullopt if the variable is not
// set, libdebuginfod.so.1 is not installed or cannot be loaded, because the command is
// static, or no server has the file. Blocks for at most DEBUGINFOD_TIMEOUT.
std::optional<std::string> download_debug_file(const BuildId& build_id);

}  // namespace arctrace::reader
