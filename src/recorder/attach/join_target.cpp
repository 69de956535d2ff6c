// Reads files in /proc.
#include "src/recorder/attach/join_target.hpp"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <elf.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "src/recorder/attach/process_status.hpp"
#include "src/recorder/attach/seccomp_check.hpp"

namespace arctrace::recorder {
namespace {

// The kernel appends this to the path of a file that has no name any more.
constexpr char kGone[] = " (deleted)";

std::string proc_path(pid_t pid, const std::string& name) {
  return absl::StrCat("/proc/", pid, "/", name);
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

// The limits that yama puts on who may trace whom; 0: none.
int yama_scope() {
  std::ifstream file("/proc/sys/kernel/yama/ptrace_scope");
  int scope = 0;
  return file >> scope ? scope : 0;
}

// Why the kernel keeps this process out of the memory of another one.
std::string no_rights() {
  constexpr int kNobody = 3;
  const int scope = yama_scope();
  if (scope == kNobody) {
    return "kernel.yama.ptrace_scope is 3, which forbids to join processes to all, until "
           "the machine is booted without it";
  }
  if (geteuid() != 0) {
    return absl::StrCat(
        "no rights; run arctrace as root or as its user",
        scope == 0 ? ""
                   : absl::StrCat(
                         " (kernel.yama.ptrace_scope is ", scope,
                         ": sysctl kernel.yama.ptrace_scope=0 permits it to its user)"));
  }
  constexpr uint64_t kTrace = uint64_t{1} << CAP_SYS_PTRACE;
  if ((capabilities_of(read_status(getpid())) & kTrace) == 0) {
    return "this root lacks CAP_SYS_PTRACE, as in a container: give arctrace this "
           "capability, or run it outside";
  }
  return "the kernel keeps root out of its memory: it belongs to a user namespace around "
         "this one, or a security module guards it; run arctrace where the process was "
         "started";
}

// What the process' file says that it is.
struct ProgramFile {
  bool is_readable = false;
  bool is_for_this_machine = false;
  bool is_go = false;
  std::string interpreter;  // the loader; empty: it is statically linked
};

ProgramFile read_program(pid_t pid) {
  ProgramFile program;
  const int fd = open(proc_path(pid, "exe").c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return program;
  const absl::Cleanup closer = [fd] { close(fd); };
  if (elf_version(EV_CURRENT) == EV_NONE) return program;
  Elf* elf = elf_begin(fd, ELF_C_READ, nullptr);
  const absl::Cleanup ender = [elf] { elf_end(elf); };
  GElf_Ehdr header{};
  size_t count = 0;
  if (elf == nullptr || gelf_getehdr(elf, &header) == nullptr ||
      elf_getphdrnum(elf, &count) != 0) {
    return program;
  }
  program.is_readable = true;
#if defined(__x86_64__)
  program.is_for_this_machine =
      header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_machine == EM_X86_64;
#endif
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr part{};
    constexpr size_t kPathMax = 4096;
    if (gelf_getphdr(elf, static_cast<int>(i), &part) == nullptr ||
        part.p_type != PT_INTERP || part.p_filesz > kPathMax) {
      continue;
    }
    std::string path(part.p_filesz, '\0');
    const ssize_t size =
        pread(fd, path.data(), path.size(), static_cast<off_t>(part.p_offset));
    if (size > 0) program.interpreter = path.substr(0, path.find('\0'));
  }
  size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return program;
  for (Elf_Scn* section = elf_nextscn(elf, nullptr); section != nullptr;
       section = elf_nextscn(elf, section)) {
    GElf_Shdr part{};
    const char* name = gelf_getshdr(section, &part) == nullptr
                           ? nullptr
                           : elf_strptr(elf, names, part.sh_name);
    program.is_go =
        program.is_go || (name != nullptr && std::string_view(name) == ".gopclntab");
  }
  return program;
}

// Why the process' program cannot load the shim; empty: nothing in its file says so.
std::string program_problem(const ProgramFile& program) {
  if (!program.is_readable) return "its program cannot be read";
  if (!program.is_for_this_machine) {
    return "its program is not one for x86-64, the only machine on which programs can be "
           "joined";
  }
  return "";
}

// Why a process without glibc has none.
std::string without_glibc(const ProgramFile& program) {
  if (program.interpreter.empty()) {
    return program.is_go
               ? "it is a Go program, which is statically linked: only programs "
                 "that have loaded glibc can be joined"
               : "it is statically linked: only programs that have loaded glibc "
                 "can be joined";
  }
  if (absl::StrContains(program.interpreter, "musl")) {
    return "its libc is musl: only programs that have loaded glibc can be joined";
  }
  return absl::StrCat("its loader is ", program.interpreter,
                      ", and it has not loaded glibc, without which it cannot be joined");
}

// Whether a process with this status may write into the file, by its user alone.
bool may_write(const StatusFields& status, const std::string& path) {
  constexpr uint64_t kOverride = uint64_t{1} << CAP_DAC_OVERRIDE;
  const std::optional<uint32_t> user = user_of(status);
  struct stat file {};
  return stat(path.c_str(), &file) != 0 || (file.st_mode & (S_IWGRP | S_IWOTH)) != 0 ||
         !user.has_value() || *user == file.st_uid ||
         (capabilities_of(status) & kOverride) != 0;
}

// Whether the process finds a /proc. The link in it leads elsewhere for each process.
bool has_proc(pid_t pid) {
  struct stat link {};
  return lstat(proc_path(pid, "root/proc/self").c_str(), &link) == 0;
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
  const int memory = open(proc_path(pid, "mem").c_str(), O_RDONLY | O_CLOEXEC);
  if (memory < 0) return refusal(pid, no_rights());
  close(memory);
  const ProgramFile program = read_program(pid);
  if (const std::string problem = program_problem(program); !problem.empty()) {
    return refusal(pid, problem);
  }
  JoinTarget target{pid, text_of(status, "Name"), find_library(pid, "libc.so.6"),
                    find_library(pid, "libdl.so.2")};
  if (target.libc.path.empty() &&
      !find_library(pid, absl::StrCat("libc.so.6", kGone)).path.empty()) {
    return refusal(pid, "its libc has been replaced since it began; restart it");
  }
  if (target.libc.path.empty()) return refusal(pid, without_glibc(program));
  if (target.libc.file.empty()) {
    return refusal(pid,
                   absl::StrCat("its libc (", target.libc.path,
                                ") cannot be opened from here; run arctrace as root, "
                                "or in its container"));
  }
  if (const std::string other = find_other_shim(pid, shim); !other.empty()) {
    return refusal(
        pid, absl::StrCat("it has loaded ", other, ", which is not this command's shim"));
  }
  target.sees_files = sees_same_file(pid, shim) && sees_same_file(pid, session);
  if (!target.sees_files && !has_proc(pid)) {
    return refusal(
        pid, absl::StrCat("it does not see ", sees_same_file(pid, shim) ? session : shim,
                          ", and has no /proc by which it could load it from a "
                          "descriptor; give it that file at the same path"));
  }
  if (!may_write(status, session)) {
    return refusal(pid, absl::StrCat("its user may not write into ", session,
                                     "; arctrace record -p makes a buffer for its user"));
  }
  if (absl::Status checked = check_seccomp(pid); !checked.ok()) {
    return refusal(pid, std::string(checked.message()));
  }
  return target;
}

}  // namespace

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
