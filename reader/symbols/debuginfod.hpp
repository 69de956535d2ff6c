// Downloads debug files from debuginfod servers.
#pragma once

#include <optional>
#include <string>

#include "reader/symbols/elf_file.hpp"

namespace arctrace::reader {

// Fetches the debug file of `build_id` from the servers in DEBUGINFOD_URLS into
// libdebuginfod's cache, and returns its path there. nullopt if the variable is not set,
// libdebuginfod.so.1 is not installed or cannot be loaded, because the command is static,
// or no server has the file. Blocks for at most DEBUGINFOD_TIMEOUT.
std::optional<std::string> download_debug_file(const BuildId& build_id);

}  // namespace arctrace::reader
