// Reads files in /proc, and the tables of a process' libraries.
#include "src/recorder/attach/join_target.hpp"

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>
#include <elf.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace arctrace::recorder {
namespace {

// A file that is closed with this object. Opening it does not wait, if a FIFO is in its
// place.
class OpenFile {
 public:
  explicit OpenFile(const std::string& path)
      : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~OpenFile() {
    if (fd_ >= 0) close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

std::string proc_path(pid_t pid, const std::string& name) {
  return absl::StrCat("/proc/", pid, "/", name);
}

// The lines "Key:  value" of /proc/PID/status; empty: there is no such process.
std::map<std::string, std::string> read_status(pid_t pid) {
  std::map<std::string, std::string> fields;
  std::ifstream file(proc_path(pid, "status"));
  for (std::string line; std::getline(file, line);) {
    const std::pair<std::string, std::string> field =
        absl::StrSplit(line, absl::MaxSplits(":\t", 1));
    fields.insert(field);
  }
  return fields;
}

std::string text_of(const std::map<std::string, std::string>& status, const char* key) {
  const auto found = status.find(key);
  return found != status.end() ? found->second : "";
}

int64_t number_of(const std::map<std::string, std::string>& status, const char* key) {
  int64_t number = 0;
  return absl::SimpleAtoi(text_of(status, key), &number) ? number : 0;
}

absl::Status refusal(pid_t pid, const std::string& why) {
  return absl::FailedPreconditionError(
      absl::StrCat("cannot join process ", pid, ": ", why));
}

// The kernel's flags of the process' main thread (PF_..., in include/linux/sched.h).
uint64_t kernel_flags(pid_t pid) {
  std::ifstream file(proc_path(pid, "stat"));
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');  // the name may hold anything
  if (name_end == std::string::npos) return 0;
  constexpr size_t kFlags = 7;  // ") state parent group session terminal its_group flags"
  const std::vector<std::string> fields = absl::StrSplit(line.substr(name_end), ' ');
  uint64_t flags = 0;
  return fields.size() > kFlags && absl::SimpleAtoi(fields[kFlags], &flags) ? flags : 0;
}

bool is_kernel_thread(pid_t pid) {
  constexpr uint64_t kKernelThread = 0x00200000;
  return (kernel_flags(pid) & kKernelThread) != 0;
}

std::string yama_advice() {
  std::ifstream file("/proc/sys/kernel/yama/ptrace_scope");
  int scope = 0;
  if (!(file >> scope) || scope == 0) return "";
  return absl::StrCat(" (kernel.yama.ptrace_scope is ", scope,
                      ": sysctl kernel.yama.ptrace_scope=0 permits it to its user)");
}

// Whether the process sees at `seen` the file that we see at `path`.
bool is_same_file(pid_t pid, const std::string& path, const std::string& seen) {
  struct stat here {};
  struct stat there {};
  return stat(path.c_str(), &here) == 0 &&
         stat((proc_path(pid, "root") + seen).c_str(), &there) == 0 &&
         here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

bool sees(pid_t pid, const std::string& path) { return is_same_file(pid, path, path); }

// Why the process' program cannot load the shim; empty: it can.
std::string program_problem(pid_t pid) {
  const OpenFile file(proc_path(pid, "exe"));
  Elf64_Ehdr header{};
  if (file.get() < 0 || pread(file.get(), &header, sizeof header, 0) != sizeof header ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return "its program cannot be read";
  }
#if defined(__x86_64__)
  constexpr unsigned kMachine = EM_X86_64;
#else
  constexpr unsigned kMachine = EM_NONE;
#endif
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kMachine) {
    return "its program is not one for x86-64, the only machine on which programs can be "
           "joined";
  }
  return "";
}

// The kernel appends this to the path of a file that has no name any more.
constexpr char kGone[] = " (deleted)";

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// Whether a file with this name may be `library`, which is "NAME.so.VERSION".
bool is_named(const std::string& file, const std::string& library) {
  if (file == library) return true;
  const std::string stem = library.substr(0, library.find(".so"));
  return absl::StartsWith(file, stem + "-2.") && absl::EndsWith(file, ".so");
}

// A file that a process has mapped, or a part of it.
struct Mapping {
  uint64_t low;
  uint64_t high;
  bool is_executable;
  uint64_t offset;  // in the file
  std::string path;
};

std::vector<Mapping> mappings_of(pid_t pid) {
  std::vector<Mapping> mappings;
  std::ifstream maps(proc_path(pid, "maps"));
  for (std::string line; std::getline(maps, line);) {
    const size_t path = line.find('/');
    if (path == std::string::npos) continue;
    Mapping mapping{0, 0, false, 0, line.substr(path)};
    // "low-high permissions offset device inode"
    const std::vector<std::string> fields = absl::StrSplit(line.substr(0, path), ' ');
    const std::pair<std::string, std::string> range = absl::StrSplit(fields[0], '-');
    if (fields.size() < 3 || !absl::SimpleHexAtoi(range.first, &mapping.low) ||
        !absl::SimpleHexAtoi(range.second, &mapping.high) ||
        !absl::SimpleHexAtoi(fields[2], &mapping.offset)) {
      continue;
    }
    mapping.is_executable = absl::StrContains(fields[1], 'x');
    mappings.push_back(std::move(mapping));
  }
  return mappings;
}

// A library that has the shim's name and that the process has loaded, if it is another
// file, or one that has been removed since. Empty: there is none.
std::string other_shim(pid_t pid, const std::string& shim) {
  for (const Mapping& mapping : mappings_of(pid)) {
    if (absl::StartsWith(base_name(mapping.path), base_name(shim)) &&
        !is_same_file(pid, shim, mapping.path)) {
      return mapping.path;
    }
  }
  return "";
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

// Whether a process with this status may write into the file, by its user alone.
bool may_write(const std::map<std::string, std::string>& status,
               const std::string& path) {
  constexpr uint64_t kOverride = 1 << 1;  // CAP_DAC_OVERRIDE
  uint64_t capabilities = 0;
  uint32_t user = 0;
  const std::vector<std::string> users = absl::StrSplit(text_of(status, "Uid"), '\t');
  struct stat file {};
  return stat(path.c_str(), &file) != 0 || (file.st_mode & (S_IWGRP | S_IWOTH)) != 0 ||
         !absl::SimpleAtoi(users.back(), &user) || user == file.st_uid ||
         !absl::SimpleHexAtoi(text_of(status, "CapEff"), &capabilities) ||
         (capabilities & kOverride) != 0;
}

absl::StatusOr<JoinTarget> examine(pid_t pid, const std::string& shim,
                                   const std::string& session) {
  const auto status = read_status(pid);
  const auto group = static_cast<pid_t>(number_of(status, "Tgid"));
  if (group != pid) {
    return refusal(pid, absl::StrCat("it is a thread of process ", group,
                                     ", which can be joined as a whole"));
  }
  if (pid == getpid()) return refusal(pid, "it is this command itself");
  if (absl::StartsWith(text_of(status, "State"), "T")) {
    return refusal(pid, "it is stopped; continue it first (kill -CONT)");
  }
  if (is_kernel_thread(pid)) return refusal(pid, "it is a thread of the kernel");
  const auto tracer = static_cast<pid_t>(number_of(status, "TracerPid"));
  if (tracer != 0) {
    return refusal(pid, absl::StrCat("it is traced by process ", tracer,
                                     ", a debugger or strace, which has to end first"));
  }
  const OpenFile memory(proc_path(pid, "mem"));
  if (memory.get() < 0) {
    return refusal(pid, absl::StrCat("no rights; run arctrace as root or as its user",
                                     yama_advice()));
  }
  if (const std::string problem = program_problem(pid); !problem.empty()) {
    return refusal(pid, problem);
  }
  JoinTarget target{pid, text_of(status, "Name"), find_library(pid, "libc.so.6"),
                    find_library(pid, "libdl.so.2")};
  if (target.libc.path.empty() &&
      !find_library(pid, absl::StrCat("libc.so.6", kGone)).path.empty()) {
    return refusal(pid, "its libc has been replaced since it began; restart it");
  }
  if (target.libc.path.empty()) {
    return refusal(
        pid, "it has no glibc: it is statically linked, or linked with another libc");
  }
  if (number_of(status, "Seccomp") != 0) {
    return refusal(pid,
                   "a seccomp filter confines it, which might end it; start it with "
                   "arctrace record");
  }
  if (const std::string other = other_shim(pid, shim); !other.empty()) {
    return refusal(
        pid, absl::StrCat("it has loaded ", other, ", which is not this command's shim"));
  }
  if (!sees(pid, shim) || !sees(pid, session)) {
    return refusal(pid, absl::StrCat("it does not see ", sees(pid, shim) ? session : shim,
                                     ", as programs in containers do; give it that file "
                                     "at the same path"));
  }
  if (!may_write(status, session)) {
    return refusal(pid, absl::StrCat("its user may not write into ", session,
                                     "; run arctrace as its user"));
  }
  return target;
}

}  // namespace

LoadedLibrary find_library(pid_t pid, const std::string& name) {
  LoadedLibrary begun;
  for (const Mapping& mapping : mappings_of(pid)) {
    if (!is_named(base_name(mapping.path), name)) continue;
    // The loader maps the file's beginning first, and the code behind it. The program may
    // have mapped the file for other purposes as well.
    if (mapping.offset == 0) begun = {mapping.path, mapping.low};
    if (mapping.is_executable && mapping.path == begun.path) return begun;
  }
  return {};
}

std::string mapped_file(pid_t pid, uint64_t address) {
  for (const Mapping& mapping : mappings_of(pid)) {
    if (address >= mapping.low && address < mapping.high) return mapping.path;
  }
  return "";
}

std::vector<CodeMemory> find_own_code(pid_t pid) {
  std::vector<CodeMemory> code;
  for (const Mapping& mapping : mappings_of(pid)) {
    if (mapping.is_executable &&
        absl::StartsWith(base_name(mapping.path), "libarctrace")) {
      code.push_back({mapping.low, mapping.high});
    }
  }
  return code;
}

uint64_t find_function(pid_t pid, const LoadedLibrary& library, const std::string& name) {
  const OpenFile file(proc_path(pid, "root") + library.path);
  if (library.path.empty() || file.get() < 0 || elf_version(EV_CURRENT) == EV_NONE) {
    return 0;
  }
  Elf* elf = elf_begin(file.get(), ELF_C_READ, nullptr);
  uint64_t address = 0;
  for (Elf_Scn* section = elf_nextscn(elf, nullptr); section != nullptr && address == 0;
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
      address = library.low + symbol.st_value;
      break;
    }
  }
  elf_end(elf);
  return address;
}

uint64_t find_system_call(const JoinTarget& target) {
  // syscall; ret: the end of getppid(), which cannot fail and leaves errno alone.
  constexpr uint64_t kFunction = 32;
  const uint64_t begin = find_function(target.pid, target.libc, "getppid");
  return begin == 0 ? 0
                    : find_bytes(target.pid, begin, begin + kFunction, "\x0f\x05\xc3");
}

uint64_t find_signal_return(const JoinTarget& target) {
  // mov $15, %rax; syscall: the whole of __restore_rt(), which has no exported name.
  static constexpr std::string_view kCode("\x48\xc7\xc0\x0f\0\0\0\x0f\x05", 9);
  for (const Mapping& mapping : mappings_of(target.pid)) {
    if (mapping.path != target.libc.path || !mapping.is_executable) continue;
    const uint64_t found = find_bytes(target.pid, mapping.low, mapping.high, kCode);
    if (found != 0) return found;
  }
  return 0;
}

absl::Status ended_status(pid_t pid) {
  const auto status = read_status(pid);
  if (status.empty()) {
    return absl::NotFoundError(absl::StrCat("there is no process ", pid));
  }
  const std::string state = text_of(status, "State");
  // A process that ends loses its memory first.
  const bool has_ended = absl::StartsWith(state, "Z") || absl::StartsWith(state, "X") ||
                         (status.count("VmSize") == 0 && !is_kernel_thread(pid));
  return has_ended ? refusal(pid, "it has ended") : absl::OkStatus();
}

absl::StatusOr<JoinTarget> examine_process(pid_t pid, const std::string& shim,
                                           const std::string& session) {
  absl::StatusOr<JoinTarget> target = examine(pid, shim, session);
  if (target.ok()) return target;
  const absl::Status ended = ended_status(pid);
  return ended.ok() ? target : ended;
}

}  // namespace arctrace::recorder
