// Targets for what a user's or another one's file hands to the command and the shim:
// options, files of options, and the names of debug files.
#include <arctrace/format.h>
#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "reader/cli/commands/commands.hpp"
#include "reader/cli/options/command_line.hpp"
#include "reader/symbols/debug_files.hpp"
#include "src/shim_protocol/options.hpp"
#include "tests/fuzz/exercise.hpp"
#include "tests/fuzz/targets.hpp"

namespace arctrace::fuzz {
namespace {

namespace fs = std::filesystem;

std::string text_of(Bytes input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}

// A directory of this process, removed at its end.
class Scratch {
 public:
  Scratch() {
    std::string made = "/dev/shm/fuzz-XXXXXX";
    require(mkdtemp(made.data()) != nullptr, "a directory in shared memory");
    path_ = made;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

const fs::path& scratch() {
  static const Scratch scratch;
  return scratch.path();
}

void write_file(const fs::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  require(file.flush().good(), "room in shared memory");
}

// Parses as main() does, and runs no command.
void parse(std::vector<std::string> arguments) {
  CLI::App root;
  root.set_config("--config", "", "", false);
  root.config_formatter(std::make_shared<cli::ConfigFile>(root));
  root.allow_config_extras(CLI::config_extras_mode::error);
  root.fallthrough();
  std::vector<cli::Runner> runners;
  for (const auto add :
       {cli::add_record, cli::add_report, cli::add_dump, cli::add_info, cli::add_check,
        cli::add_create, cli::add_attach, cli::add_ctl}) {
    runners.push_back(add(root));
  }
  cli::separate_command(root, arguments);
  std::reverse(arguments.begin(), arguments.end());
  try {
    root.parse(std::move(arguments));
  } catch (const CLI::Error&) {
  }
}

// An ELF file with one section, of that name and content.
std::string elf_with(std::string_view name, std::string_view content) {
  const std::string names =
      std::string(1, '\0') + ".shstrtab" + '\0' + std::string(name) + '\0';
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof header;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 3;
  header.e_shstrndx = 1;
  header.e_shoff = sizeof header;
  Elf64_Shdr sections[3]{};
  const size_t names_at = sizeof header + sizeof sections;
  sections[1].sh_name = 1;
  sections[1].sh_type = SHT_STRTAB;
  sections[1].sh_offset = names_at;
  sections[1].sh_size = names.size();
  sections[2].sh_name = static_cast<Elf64_Word>(names.find('.', 2));
  sections[2].sh_type = SHT_PROGBITS;
  sections[2].sh_offset = names_at + names.size();
  sections[2].sh_size = content.size();
  std::string file(reinterpret_cast<const char*>(&header), sizeof header);
  file.append(reinterpret_cast<const char*>(sections), sizeof sections);
  return file.append(names).append(content);
}

}  // namespace

void config(Bytes input) {
  const fs::path file = scratch() / "config";
  write_file(file, text_of(input));
  for (const char* command : {"record", "report"}) {
    parse({"--config", file.string(), command, "file"});
  }
}

void options(Bytes input) {
  const std::string text = text_of(input);
  auto decoded = std::make_unique<shim::ShimOptions>();
  shim::decode_options(text.c_str(), *decoded);
  require(decoded->pattern_count <= std::size(decoded->patterns), "patterns that fit");
  std::vector<std::string> arguments;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line) && arguments.size() < 100;) {
    // Skips options that name a file of options elsewhere.
    if (!line.starts_with("--config")) arguments.push_back(line);
  }
  parse(arguments);
}

void debug_link(Bytes input) {
  // The directories that a search visits have what could harm it, under names that an
  // input may find.
  static const bool is_made = [] {
    fs::create_directories(scratch() / ".debug/directory");
    fs::create_symlink(".", scratch() / ".debug/loop");
    fs::create_symlink("circle", scratch() / "circle");
    require(mkfifo((scratch() / "fifo").c_str(), 0600) == 0, "a FIFO");
    write_file(scratch() / "sparse", "");
    fs::resize_file(scratch() / "sparse", uint64_t{1} << 40);
    write_file(scratch() / "good", elf_with(".text", "code"));
    return true;
  }();
  require(is_made, "files for the search");
  // The input is a path that the trace names, then what the module says.
  const std::string text = text_of(input);
  const size_t cut = std::min(text.find('\n'), text.size());
  const std::string named = text.substr(0, cut);
  const std::string content = cut < text.size() ? text.substr(cut + 1) : "";
  const fs::path module = scratch() / "module";
  reader::SymbolOptions symbol_options;
  symbol_options.debug_root = scratch().string();
  const reader::DebugFiles files(symbol_options);
  for (const char* section : {".gnu_debuglink", ".gnu_debugaltlink"}) {
    write_file(module, elf_with(section, content));
    const auto elf = reader::ElfFile::open_untrusted(module.string());
    if (!elf.ok()) continue;
    for (const std::string& path : {module.string(), (scratch() / named).string()}) {
      const auto found = files.find_untrusted(path, *elf);
      require(!found || found->path != path, "a module is not its own debug file");
      const auto bytes = std::as_bytes(std::span(content));
      const reader::BuildId build_id(bytes.begin(), bytes.end());
      files.find_supplementary_untrusted(path, named, build_id);
    }
  }
}

}  // namespace arctrace::fuzz
