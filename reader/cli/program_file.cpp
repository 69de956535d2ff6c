#include "reader/cli/program_file.hpp"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/string_view.h>
#include <elf.h>
#include <gelf.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <fstream>

#include "reader/symbols/elf_file.hpp"

namespace arctrace::cli {
namespace {

#if defined(__x86_64__)
constexpr GElf_Half kOwnMachine = EM_X86_64;
#else
constexpr GElf_Half kOwnMachine = EM_AARCH64;
#endif

// The interpreter that a script's first line names, as the kernel reads it; empty: it is
// no script.
std::string interpreter_of(const std::string& path) {
  constexpr size_t kHeadSize = 256;
  std::array<char, kHeadSize> head{};
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), head.size());
  absl::string_view line(head.data(), static_cast<size_t>(file.gcount()));
  if (line.substr(0, 2) != "#!") return {};
  line = line.substr(2, line.find('\n') - 2);
  line = absl::StripAsciiWhitespace(line);
  return std::string(line.substr(0, line.find_first_of(" \t")));
}

// The file itself, or the interpreter of a script.
std::string program_that_runs(const std::string& path) {
  constexpr int kScriptsMax = 5;  // within one another, as the kernel has it
  std::string program = path;
  for (int i = 0; i < kScriptsMax; ++i) {
    const std::string interpreter = interpreter_of(program);
    if (interpreter.empty()) break;
    program = interpreter;
  }
  return program;
}

bool is_foreign(Elf* elf, const GElf_Ehdr& header) {
  return header.e_machine != kOwnMachine || gelf_getclass(elf) != ELFCLASS64;
}

// Whether it runs with rights that who starts it has not: then the loader ignores
// LD_PRELOAD.
std::optional<std::string> raised_rights(const std::string& path) {
  struct stat status {};
  struct statvfs system {};
  if (stat(path.c_str(), &status) != 0 || statvfs(path.c_str(), &system) != 0 ||
      (system.f_flag & ST_NOSUID) != 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) {
    return std::nullopt;
  }
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != getuid()) return "setuid";
  const mode_t setgid = S_ISGID | S_IXGRP;
  if ((status.st_mode & setgid) == setgid && status.st_gid != getgid()) return "setgid";
  if (getuid() != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0) {
    return "given capabilities";
  }
  return std::nullopt;
}

// A position-independent program says so; the loader itself is a library.
bool is_program(Elf* elf, const GElf_Phdr& dynamic) {
  Elf_Data* data = elf_getdata_rawchunk(elf, static_cast<int64_t>(dynamic.p_offset),
                                        dynamic.p_filesz, ELF_T_DYN);
  GElf_Dyn entry;
  for (int i = 0; data != nullptr && gelf_getdyn(data, i, &entry) != nullptr; ++i) {
    if (entry.d_tag == DT_FLAGS_1) return (entry.d_un.d_val & DF_1_PIE) != 0;
  }
  return false;
}

// Whether the loader that the segment names is musl's.
bool is_of_musl(Elf* elf, const GElf_Phdr& interpreter) {
  const Elf_Data* data = elf_getdata_rawchunk(
      elf, static_cast<int64_t>(interpreter.p_offset), interpreter.p_filesz, ELF_T_BYTE);
  if (data == nullptr) return false;
  const absl::string_view path(static_cast<const char*>(data->d_buf), data->d_size);
  return absl::StartsWith(path.substr(path.rfind('/') + 1), "ld-musl-");
}

// How it is linked, if so that our library is not loaded or does nothing.
std::optional<std::string> foreign_linkage(Elf* elf, const GElf_Ehdr& header) {
  size_t count = 0;
  if (elf_getphdrnum(elf, &count) != 0) return std::nullopt;
  bool is_static = header.e_type == ET_EXEC;
  for (int i = 0; i < static_cast<int>(count); ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf, i, &segment) == nullptr) return std::nullopt;
    if (segment.p_type == PT_INTERP) {
      if (is_of_musl(elf, segment)) return "linked with musl";
      return std::nullopt;
    }
    if (segment.p_type == PT_DYNAMIC && header.e_type == ET_DYN) {
      is_static = is_program(elf, segment);
    }
  }
  if (is_static) return "statically linked";
  return std::nullopt;
}

}  // namespace

std::string find_program(const std::string& command) {
  if (command.find('/') != std::string::npos) return command;
  const char* path = std::getenv("PATH");
  for (const absl::string_view folder :
       absl::StrSplit(path != nullptr ? path : "/bin:/usr/bin", ':')) {
    std::string file = absl::StrCat(folder.empty() ? "." : folder, "/", command);
    struct stat status {};
    if (stat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
        access(file.c_str(), X_OK) == 0) {
      return file;
    }
  }
  return {};
}

std::optional<std::string> why_untraceable(const std::string& path) {
  const std::string program = program_that_runs(path);
  const auto file = reader::ElfFile::open_untrusted(program);
  GElf_Ehdr header;
  if (!file.ok() || gelf_getehdr(file->handle(), &header) == nullptr) return std::nullopt;
  if (is_foreign(file->handle(), header)) return "of another architecture";
  if (auto how = foreign_linkage(file->handle(), header)) return how;
  return raised_rights(program);
}

bool has_foreign_loader(const std::string& path) {
  const auto file = reader::ElfFile::open_untrusted(program_that_runs(path));
  GElf_Ehdr header;
  size_t count = 0;
  if (!file.ok() || gelf_getehdr(file->handle(), &header) == nullptr ||
      !is_foreign(file->handle(), header) ||
      elf_getphdrnum(file->handle(), &count) != 0) {
    return false;
  }
  for (int i = 0; i < static_cast<int>(count); ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(file->handle(), i, &segment) == nullptr) return false;
    if (segment.p_type == PT_INTERP) return true;
  }
  return false;
}

}  // namespace arctrace::cli
