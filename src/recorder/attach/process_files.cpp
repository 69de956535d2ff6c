// Reads /proc/PID/maps, and the tables of a process' libraries.
#include "src/recorder/attach/process_files.hpp"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

namespace arctrace::recorder {
namespace {

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// Whether a file with this name may be `library`, which is "NAME.so.VERSION".
bool is_named(const std::string& file, const std::string& library) {
  if (file == library) return true;
  const std::string stem = library.substr(0, library.find(".so"));
  return absl::StartsWith(file, stem + "-2.") && absl::EndsWith(file, ".so");
}

bool read_fields(const std::vector<std::string>& fields, Mapping& mapping) {
  const std::pair<std::string, std::string> range = absl::StrSplit(fields[0], '-');
  const std::pair<std::string, std::string> device = absl::StrSplit(fields[3], ':');
  unsigned major_number = 0;
  unsigned minor_number = 0;
  if (!absl::SimpleHexAtoi(range.first, &mapping.low) ||
      !absl::SimpleHexAtoi(range.second, &mapping.high) ||
      !absl::SimpleHexAtoi(fields[2], &mapping.offset) ||
      !absl::SimpleHexAtoi(device.first, &major_number) ||
      !absl::SimpleHexAtoi(device.second, &minor_number) ||
      !absl::SimpleAtoi(fields[4], &mapping.inode)) {
    return false;
  }
  mapping.device = makedev(major_number, minor_number);
  mapping.is_executable = absl::StrContains(fields[1], 'x');
  return true;
}

enum class Found : unsigned char { kNo, kSameInode, kSame };

// What the file at `path` is to the mapping. On overlays the kernel may say another
// device here than there.
Found compare(const std::string& path, const Mapping& mapping) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_ino != mapping.inode) {
    return Found::kNo;
  }
  return status.st_dev == mapping.device ? Found::kSame : Found::kSameInode;
}

std::string root_of(pid_t pid) { return absl::StrCat("/proc/", pid, "/root"); }

std::string in_root_of(pid_t pid, const std::string& path) {
  return absl::StrCat(root_of(pid), path);
}

// The path without the process' root directory, as the kernel names it, before it.
std::string below_root(pid_t pid, const std::string& path) {
  std::error_code error;
  const std::string root = std::filesystem::read_symlink(root_of(pid), error).native();
  return !error && root != "/" && absl::StartsWith(path, root + "/")
             ? path.substr(root.size())
             : path;
}

// The first address of these bytes in the memory from `low` to `high`; 0: there is none.
uint64_t find_bytes(pid_t pid, uint64_t low, uint64_t high, std::string_view bytes) {
  constexpr uint64_t kSizeMax = uint64_t{64} << 20;  // libc's code has 1.4 MiB
  if (high - low > kSizeMax) return 0;
  std::string memory(high - low, '\0');
  iovec to{memory.data(), memory.size()};
  iovec from{reinterpret_cast<void*>(low), memory.size()};
  const ssize_t size = process_vm_readv(pid, &to, 1, &from, 1, 0);
  if (size <= 0) return 0;
  const size_t at = memory.substr(0, static_cast<size_t>(size)).find(bytes);
  return at == std::string::npos ? 0 : low + at;
}

}  // namespace

std::vector<Mapping> read_mappings(pid_t pid) {
  std::vector<Mapping> mappings;
  std::ifstream maps(absl::StrCat("/proc/", pid, "/maps"));
  for (std::string line; std::getline(maps, line);) {
    const size_t path = line.find('/');
    if (path == std::string::npos) continue;
    // "low-high permissions offset device inode"
    const std::vector<std::string> fields =
        absl::StrSplit(line.substr(0, path), ' ', absl::SkipEmpty());
    Mapping mapping{.path = line.substr(path)};
    if (fields.size() == 5 && read_fields(fields, mapping)) {
      mappings.push_back(std::move(mapping));
    }
  }
  return mappings;
}

std::string path_to(pid_t pid, const Mapping& mapping) {
  // The kernel names files from our root directory, or, where they cannot be reached from
  // there, from the root of the process' mount namespace. A link to the mapped file
  // itself is for those who may follow it.
  const std::string candidates[] = {
      mapping.path, in_root_of(pid, below_root(pid, mapping.path)),
      absl::StrCat("/proc/", pid, "/map_files/", absl::Hex(mapping.low), "-",
                   absl::Hex(mapping.high))};
  std::string same_inode;
  for (const std::string& path : candidates) {
    const Found found = compare(path, mapping);
    if (found == Found::kSame) return path;
    if (found == Found::kSameInode && same_inode.empty()) same_inode = path;
  }
  return same_inode;
}

std::string path_to_mapped(pid_t pid, uint64_t address) {
  for (const Mapping& mapping : read_mappings(pid)) {
    if (address >= mapping.low && address < mapping.high) return path_to(pid, mapping);
  }
  return "";
}

bool sees_same_file(pid_t pid, const std::string& path) {
  struct stat here {};
  struct stat there {};
  return stat(path.c_str(), &here) == 0 &&
         stat(in_root_of(pid, path).c_str(), &there) == 0 &&
         here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

LoadedLibrary find_library(pid_t pid, const std::string& name) {
  LoadedLibrary begun;
  for (const Mapping& mapping : read_mappings(pid)) {
    if (!is_named(base_name(mapping.path), name)) continue;
    // The loader maps the file's beginning first, and the code behind it. The program may
    // have mapped the file for other purposes as well.
    if (mapping.offset == 0) begun = {mapping.path, mapping.low, ""};
    if (mapping.is_executable && mapping.path == begun.path) {
      begun.file = path_to(pid, mapping);
      return begun;
    }
  }
  return {};
}

std::string find_other_shim(pid_t pid, const std::string& shim) {
  for (const Mapping& mapping : read_mappings(pid)) {
    if (absl::StartsWith(base_name(mapping.path), base_name(shim)) &&
        compare(shim, mapping) == Found::kNo) {
      return mapping.path;
    }
  }
  return "";
}

std::vector<CodeMemory> find_own_code(pid_t pid) {
  std::vector<CodeMemory> code;
  for (const Mapping& mapping : read_mappings(pid)) {
    if (mapping.is_executable &&
        absl::StartsWith(base_name(mapping.path), "libarctrace")) {
      code.push_back({mapping.low, mapping.high});
    }
  }
  return code;
}

uint64_t find_function(const LoadedLibrary& library, const std::string& name) {
  const int fd = open(library.file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return 0;
  const absl::Cleanup closer = [fd] { close(fd); };
  if (elf_version(EV_CURRENT) == EV_NONE) return 0;
  Elf* elf = elf_begin(fd, ELF_C_READ, nullptr);
  const absl::Cleanup ender = [elf] { elf_end(elf); };
  for (Elf_Scn* section = elf_nextscn(elf, nullptr); section != nullptr;
       section = elf_nextscn(elf, section)) {
    GElf_Shdr header{};
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_DYNSYM ||
        header.sh_entsize == 0) {
      continue;
    }
    Elf_Data* data = elf_getdata(section, nullptr);
    for (size_t i = 0; data != nullptr && i < header.sh_size / header.sh_entsize; ++i) {
      GElf_Sym symbol{};
      if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) break;
      const char* text = elf_strptr(elf, header.sh_link, symbol.st_name);
      if (text == nullptr || symbol.st_shndx == SHN_UNDEF || name != text) continue;
      return library.low + symbol.st_value;
    }
  }
  return 0;
}

uint64_t find_system_call(pid_t pid, const LoadedLibrary& libc) {
  // syscall; ret: the end of getppid(), which cannot fail and leaves errno alone.
  constexpr uint64_t kFunction = 32;
  const uint64_t begin = find_function(libc, "getppid");
  return begin == 0 ? 0 : find_bytes(pid, begin, begin + kFunction, "\x0f\x05\xc3");
}

uint64_t find_signal_return(pid_t pid, const LoadedLibrary& libc) {
  // mov $15, %rax; syscall: the whole of __restore_rt(), which has no exported name.
  static constexpr std::string_view kCode("\x48\xc7\xc0\x0f\0\0\0\x0f\x05", 9);
  for (const Mapping& mapping : read_mappings(pid)) {
    if (mapping.path != libc.path || !mapping.is_executable) continue;
    const uint64_t found = find_bytes(pid, mapping.low, mapping.high, kCode);
    if (found != 0) return found;
  }
  return 0;
}

}  // namespace arctrace::recorder
