// The DWARF data of a file, as far as libdw can be trusted with it.
#pragma once

#include <elfutils/libdw.h>

#include <optional>
#include <string>

#include "reader/symbols/debug_files.hpp"
#include "reader/symbols/elf_file.hpp"

namespace arctrace::reader {

// The caller ends it by dwarf_end() before `file` is closed. Null if the file has no
// DWARF data, or data that libdw must not be given.
Dwarf* begin_dwarf_untrusted(const ElfFile& file);

// Sets `found` to the dwz file that the DWARF data of `file` at `path` needs, or to
// nullopt if it needs none. Without this libdw would open that file itself, by a path
// from the untrusted file, and wait for ever if it is a FIFO. False: the file is needed
// but missing.
bool find_supplementary_untrusted(const ElfFile& file, Dwarf* dwarf,
                                  const std::string& path, const DebugFiles& debug_files,
                                  std::optional<ElfFile>& found);

}  // namespace arctrace::reader
