#include "tests/unit/symbols/fixtures.hpp"

#include <stdlib.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <stdexcept>

namespace arctrace::reader {

std::string fixture(const std::string& name) {
  return std::string(SYMBOLS_FIXTURES) + "/" + name;
}

uint32_t source_line(const std::string& source, const std::string& text) {
  std::ifstream file(std::string(SYMBOLS_SOURCE) + "/" + source);
  std::string line;
  for (uint32_t number = 1; std::getline(file, line); ++number) {
    if (line.find(text) != std::string::npos) return number;
  }
  return 0;
}

std::map<std::string, uint64_t> nm_addresses(const std::string& path,
                                             const std::string& options,
                                             const std::string& wanted) {
  const std::string command =
      std::string(SYMBOLS_NM) + " --format=sysv --defined-only " + options + " " + path;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::map<std::string, uint64_t> addresses;
  char line[4096];
  while (pipe != nullptr && std::fgets(line, sizeof line, pipe.get()) != nullptr) {
    // "name |address | class | type|..."; class i: IFUNC.
    std::istringstream fields(line);
    std::string name;
    std::string address;
    std::string symbol_class;
    std::string type;
    if (std::getline(fields, name, '|') && std::getline(fields, address, '|') &&
        std::getline(fields, symbol_class, '|') && std::getline(fields, type, '|') &&
        (type.ends_with(wanted) ||
         (wanted == "FUNC" && symbol_class.find('i') != std::string::npos))) {
      addresses[name.substr(0, name.find(' '))] = std::stoull(address, nullptr, 16);
    }
  }
  return addresses;
}

BuildId build_id_of(const std::string& path) {
  const auto file = ElfFile::open_untrusted(path);
  return file.ok() ? file->build_id() : BuildId();
}

SymbolOptions rooted_at(const std::string& debug_root) {
  SymbolOptions options;
  options.debug_root = debug_root;
  return options;
}

absl::StatusOr<SymbolFile> open_file(const std::string& path,
                                     const std::string& debug_root) {
  return SymbolFile::open_untrusted(path, {}, DebugFiles(rooted_at(debug_root)));
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

void copy_file(const std::string& from, const std::string& to) {
  std::filesystem::create_directories(std::filesystem::path(to).parent_path());
  std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing);
}

std::string build_id_path(const std::string& root, const BuildId& build_id) {
  const std::string hex = to_hex(build_id);
  return root + "/.build-id/" + hex.substr(0, 2) + "/" + hex.substr(2) + ".debug";
}

}  // namespace arctrace::reader
