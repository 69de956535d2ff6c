// The DWARF data of a file, as far as libdw can be trusted with it.
#pragma once

#include <elfutils/libdw.h>

#include <optional>
#include <string>

#include "reader/symbols/debug_files.hpp"
#include "reader/symbols/elf_file.hpp"

namespace arctrace::reader {

// To be ended by dwarf_end() before `file` is closed. Null if the file has no DWARF data,
// or such as libdw cannot be given.
Dwarf* begin_dwarf_untrusted(const ElfFile& file);

// The dwz file that the DWARF data of `file` at `path` needs, in `found`; nothing there:
// it needs none. Without this libdw would open the file itself, by a path out of the
// untrusted file, and wait for ever if that is a FIFO. False: it is needed but not there.
bool find_supplementary_untrusted(const ElfFile& file, Dwarf* dwarf,
                                  const std::string& path, const DebugFiles& debug_files,
                                  std::optional<ElfFile>& found);

}  // namespace arctrace::reader
