// Shared code of this directory's tests: paths of the fixtures, nm's lists of them,
// and temporary directories.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "reader/symbols/debug_files.hpp"
#include "reader/symbols/elf_file.hpp"
#include "reader/symbols/symbol_file.hpp"

namespace arctrace::reader {

// The absolute path of a fixture that CMakeLists.txt makes.
std::string fixture(const std::string& name);

// The number of the first line with `text` in a fixture's source; 0 if there is none.
uint32_t source_line(const std::string& source, const std::string& text);

// Name to file address of the defined functions, or variables ("OBJECT"), by nm with
// `options`.
std::map<std::string, uint64_t> nm_addresses(const std::string& path,
                                             const std::string& options,
                                             const std::string& wanted = "FUNC");

// The build-id of a fixture, or nothing if that cannot be read.
BuildId build_id_of(const std::string& path);

// Options that search for debug files below `debug_root` only.
SymbolOptions rooted_at(const std::string& debug_root);

absl::StatusOr<SymbolFile> open_file(const std::string& path,
                                     const std::string& debug_root = "/nonexistent");

std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& bytes);

// Copies a file; makes the directories that are missing, too.
void copy_file(const std::string& from, const std::string& to);

// ROOT/.build-id/xx/yyyy.debug
std::string build_id_path(const std::string& root, const BuildId& build_id);

}  // namespace arctrace::reader
