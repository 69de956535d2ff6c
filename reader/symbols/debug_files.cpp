#include "reader/symbols/debug_files.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

namespace arctrace::reader {
namespace {

// Whether `file` is the debug file that the `link` of a module with `build_id` means.
bool is_linked_file(const ElfFile& file, const DebugLink& link, const BuildId& build_id) {
  const BuildId found = file.build_id();
  if (!build_id.empty() && !found.empty()) return found == build_id;
  return file.crc32() == link.crc;
}

// Opens the file at `path`, if it has that build-id.
std::optional<DebugFile> open_with_build_id(const std::string& path,
                                            const BuildId& build_id) {
  absl::StatusOr<ElfFile> file = ElfFile::open_untrusted(path);
  if (build_id.empty() || !file.ok() || file->build_id() != build_id) return std::nullopt;
  return DebugFile{path, *std::move(file)};
}

std::optional<DebugFile> only_module(std::optional<DebugFile> file) {
  if (file && !file->elf.is_module()) return std::nullopt;
  return file;
}

// Returns the directory of `path` as it is written, and the one to which its links lead.
std::vector<std::filesystem::path> directories_of(const std::string& path) {
  const std::filesystem::path written(path);
  std::vector<std::filesystem::path> directories{written.parent_path()};
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(written, error);
  if (!error && real.parent_path() != directories.front()) {
    directories.push_back(real.parent_path());
  }
  return directories;
}

}  // namespace

DebugFiles::DebugFiles(SymbolOptions options) : options_(std::move(options)) {}

std::string DebugFiles::build_id_path(const BuildId& build_id) const {
  const std::string hex = to_hex(build_id);
  return options_.debug_root + "/.build-id/" + hex.substr(0, 2) + "/" +
         hex.substr(std::min<size_t>(2, hex.size())) + ".debug";
}

std::optional<DebugFile> DebugFiles::find_by_build_id_untrusted(
    const BuildId& build_id) const {
  return only_module(open_with_build_id(build_id_path(build_id), build_id));
}

std::optional<DebugFile> DebugFiles::find_untrusted(const std::string& path,
                                                    const ElfFile& elf) const {
  const BuildId build_id = elf.build_id();
  auto by_build_id = find_by_build_id_untrusted(build_id);
  // `path` may already be that of a debug file.
  if (by_build_id && by_build_id->path != path) return by_build_id;
  const std::optional<DebugLink> link = elf.debug_link();
  // The link must be a plain name, not a path that leads elsewhere.
  if (!link || link->name.empty() || link->name.find('/') != std::string::npos) {
    return std::nullopt;
  }
  for (const std::filesystem::path& directory : directories_of(path)) {
    for (const std::filesystem::path& place :
         {directory, directory / ".debug",
          options_.debug_root / directory.relative_path()}) {
      const std::string candidate = place / link->name;
      absl::StatusOr<ElfFile> file = ElfFile::open_untrusted(candidate);
      // A link to the module itself would add nothing.
      if (file.ok() && file->is_module() && candidate != path &&
          is_linked_file(*file, *link, build_id)) {
        return DebugFile{candidate, *std::move(file)};
      }
    }
  }
  return std::nullopt;
}

std::optional<DebugFile> DebugFiles::find_supplementary_untrusted(
    const std::string& path, const std::string& name, const BuildId& build_id) const {
  // The file is a relocatable one, of DWARF data only.
  if (auto file = open_with_build_id(build_id_path(build_id), build_id)) return file;
  // operator/ leaves an absolute name as it is.
  return open_with_build_id(std::filesystem::path(path).parent_path() / name, build_id);
}

std::optional<DebugFile> DebugFiles::download_untrusted(const BuildId& build_id) const {
  if (!options_.allow_download || build_id.empty()) return std::nullopt;
  const std::optional<std::string> path = download_debug_file(build_id);
  if (!path) return std::nullopt;
  return only_module(open_with_build_id(*path, build_id));
}

}  // namespace arctrace::reader
