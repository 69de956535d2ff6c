// Files that this user's recordings retain for later ones, in $XDG_CACHE_HOME/arctrace or
// in ~/.cache/arctrace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace arctrace::recorder {

// The directory that the environment says; empty if it names none.
std::string user_cache_directory();

// The bytes of a regular file of at most `bytes_max` that is this user's and that nobody
// else can write: its contents decide how programs are recorded. nullopt: there is none.
std::optional<std::vector<std::byte>> read_own_file(const std::string& path,
                                                    uint64_t bytes_max);

// Writes the file under a temporary name until it is whole, and makes its directory.
// False: the file was not written.
bool write_own_file(const std::string& path, std::span<const std::byte> bytes);

}  // namespace arctrace::recorder
