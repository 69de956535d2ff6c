// Reads a program's file, and the interpreters of scripts, for the reason why it can't be
// traced.
#include "src/os/program_file.hpp"

#include <arctrace/format.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "src/base/memory.hpp"
#include "src/base/raw_syscall.hpp"
#include "src/os/kernel_use.hpp"

namespace arctrace {
namespace {

#if defined(__x86_64__)
constexpr Elf64_Half kOwnMachine = EM_X86_64;
#else
constexpr Elf64_Half kOwnMachine = EM_AARCH64;
#endif

constexpr int kScriptsMax = 5;      // nested interpreters, the kernel's limit
constexpr size_t kHeadSize = 256;   // bytes of a script's first line that are read
constexpr int kSegmentsMax = 256;   // more than any program has
constexpr int kDynamicsMax = 4096;  // entries

class File {
 public:
  // Does not block if the path names a pipe. `path` "" stands for `directory` itself.
  // Only the kernel reads the path, because the pointer may be invalid.
  File(int directory, const char* path)
      : is_ours_(true),
        fd_(static_cast<int>(raw_syscall(SYS_openat, directory,
                                         sys::pointer_argument(path),
                                         O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY))) {
    if (fd_ != -ENOENT || path[0] != '\0') return;
    is_ours_ = false;
    fd_ = directory;
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (is_ours_ && is_open()) sys::close(fd_);
  }
  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  template <class T>
  bool read(T& out, uint64_t offset) const {
    return sys::pread(fd_, &out, sizeof out, offset) == static_cast<long>(sizeof out);
  }

 private:
  bool is_ours_;
  int fd_;
};

// Reads the interpreter in a script's first line as the kernel does, into `head`. False:
// the file is not a script.
bool interpreter_of(const File& file, char (&head)[kHeadSize + 1]) {
  const long size = sys::pread(file.fd(), head, kHeadSize, 0);
  if (size < 2 || head[0] != '#' || head[1] != '!') return false;
  head[size] = '\0';
  const char* from = head + 2;
  while (*from == ' ' || *from == '\t') ++from;
  char* to = head;
  while (*from != '\0' && *from != ' ' && *from != '\t' && *from != '\n') *to++ = *from++;
  *to = '\0';
  return true;
}

// Whether a file of type ET_DYN is a position-independent program, which has DF_1_PIE;
// the loader itself is a library.
bool is_program(const File& file, const Elf64_Phdr& dynamic) {
  Elf64_Dyn entry;
  for (int i = 0; i < kDynamicsMax; ++i) {
    const uint64_t at = static_cast<uint64_t>(i) * sizeof entry;
    if (at + sizeof entry > dynamic.p_filesz ||
        !file.read(entry, dynamic.p_offset + at)) {
      return false;
    }
    if (entry.d_tag == DT_FLAGS_1) return (entry.d_un.d_val & DF_1_PIE) != 0;
  }
  return false;
}

// Whether the loader that the segment names is musl's.
bool is_of_musl(const File& file, const Elf64_Phdr& interpreter) {
  constexpr char kMark[] = "/ld-musl-";
  char path[kHeadSize + 1];
  const size_t wanted =
      interpreter.p_filesz < kHeadSize ? interpreter.p_filesz : kHeadSize;
  const long size = sys::pread(file.fd(), path, wanted, interpreter.p_offset);
  if (size <= 0) return false;
  path[size] = '\0';
  for (const char* at = path; *at != '\0'; ++at) {
    size_t same = 0;
    while (kMark[same] != '\0' && at[same] == kMark[same]) ++same;
    if (kMark[same] == '\0') return true;
  }
  return false;
}

// Calls visit(segment) until it returns true. False: it never returned true.
template <class Header, class Segment, class Visit>
bool any_segment(const File& file, const Visit& visit) {
  Header header;
  if (!file.read(header, 0)) return false;
  for (int i = 0; i < header.e_phnum && i < kSegmentsMax; ++i) {
    Segment segment;
    const uint64_t at = header.e_phoff + static_cast<uint64_t>(i) * sizeof segment;
    if (!file.read(segment, at)) return false;
    if (visit(segment)) return true;
  }
  return false;
}

// The reason for a program of another machine or word size. Its loader would complain on
// standard error that it can't load the shim; a program without a loader is like any
// static one.
uint32_t foreign_reason(const File& file, const Elf64_Ehdr& header) {
  const auto is_loaders = [](const auto& segment) { return segment.p_type == PT_INTERP; };
  const bool has_loader = header.e_ident[EI_DATA] != ELFDATA2LSB ||
                          (header.e_ident[EI_CLASS] == ELFCLASS32
                               ? any_segment<Elf32_Ehdr, Elf32_Phdr>(file, is_loaders)
                               : any_segment<Elf64_Ehdr, Elf64_Phdr>(file, is_loaders));
  return has_loader ? ARCTRACE_UNTRACED_ARCHITECTURE : ARCTRACE_UNTRACED_STATIC;
}

// The reason if the program is linked so that the shim is not loaded or does nothing.
uint32_t linkage_reason(const File& file, const Elf64_Ehdr& header) {
  bool is_static = header.e_type == ET_EXEC;
  bool is_musl = false;
  const bool has_loader =
      any_segment<Elf64_Ehdr, Elf64_Phdr>(file, [&](const Elf64_Phdr& segment) {
        if (segment.p_type == PT_DYNAMIC && header.e_type == ET_DYN) {
          is_static = is_program(file, segment);
        }
        is_musl = segment.p_type == PT_INTERP && is_of_musl(file, segment);
        return segment.p_type == PT_INTERP;
      });
  if (has_loader) return is_musl ? ARCTRACE_UNTRACED_MUSL : 0;
  return is_static ? ARCTRACE_UNTRACED_STATIC : 0;
}

bool gives_rights(const File& file) {
  struct statfs system {};
  return raw_syscall(SYS_fstatfs, file.fd(), sys::pointer_argument(&system)) == 0 &&
         (system.f_flags & ST_NOSUID) == 0 &&
         raw_syscall(SYS_prctl, PR_GET_NO_NEW_PRIVS) != 1;
}

// The reason if the program runs with more rights than the caller has, so that the loader
// ignores LD_PRELOAD.
uint32_t raised_rights(const File& file) {
  struct stat status {};
  if (sys::stat_fd(file.fd(), &status) != 0) return 0;
  uint32_t why = 0;
  constexpr mode_t kSetgid = S_ISGID | S_IXGRP;
  const long user = raw_syscall(SYS_getuid);
  if ((status.st_mode & S_ISUID) != 0 && static_cast<long>(status.st_uid) != user) {
    why = ARCTRACE_UNTRACED_SETUID;
  } else if ((status.st_mode & kSetgid) == kSetgid &&
             static_cast<long>(status.st_gid) != raw_syscall(SYS_getgid)) {
    why = ARCTRACE_UNTRACED_SETGID;
  } else if (user != 0 &&
             raw_syscall(SYS_fgetxattr, file.fd(),
                         sys::pointer_argument("security.capability"), 0, 0) > 0) {
    why = ARCTRACE_UNTRACED_CAPABILITIES;
  }
  return why != 0 && gives_rights(file) ? why : 0;
}

}  // namespace

// Finds the first file of that name in PATH that can be executed, as libc's execvp does.
bool FoundProgram::look_up(const char* name) {
  const char* directories = getenv("PATH");
  if (directories == nullptr) directories = "/bin:/usr/bin";
  const size_t name_length = text_length(name, sizeof found_path_);
  while (true) {
    size_t length = 0;
    while (directories[length] != '\0' && directories[length] != ':') ++length;
    if (length + 1 + name_length < sizeof found_path_) {
      copy_bytes(found_path_, directories, length);
      size_t at = length;
      if (length != 0) found_path_[at++] = '/';
      copy_bytes(found_path_ + at, name, name_length + 1);
      if (raw_syscall(SYS_faccessat, AT_FDCWD, sys::pointer_argument(found_path_),
                      X_OK) == 0) {
        return true;
      }
    }
    if (directories[length] == '\0') return false;
    directories += length + 1;
  }
}

FoundProgram::FoundProgram(const arctrace_shim_program& named)
    : directory_(named.directory), path_(named.path) {
  if (path_ == nullptr || named.is_looked_up == 0) return;
  if (ReadableMemory().text_length(path_, PATH_MAX) < 0) {
    path_ = nullptr;
    return;
  }
  for (const char* c = path_; *c != '\0'; ++c) {
    if (*c == '/') return;
  }
  path_ = look_up(path_) ? found_path_ : nullptr;
}

uint32_t FoundProgram::why_untraceable() const {
  char head[kHeadSize + 1];
  int directory = directory_;
  const char* path = path_;
  for (int i = 0; path != nullptr && i < kScriptsMax; ++i) {
    const File file(directory, path);
    if (!file.is_open()) return 0;
    if (interpreter_of(file, head)) {
      directory = AT_FDCWD;
      path = head;
      continue;
    }
    Elf64_Ehdr header;  // the other word size's header begins alike
    if (!file.read(header, 0) || __builtin_memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
      return 0;
    }
    if (header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_machine != kOwnMachine) {
      return foreign_reason(file, header);
    }
    const uint32_t linkage = linkage_reason(file, header);
    return linkage != 0 ? linkage : raised_rights(file);
  }
  return 0;
}

}  // namespace arctrace
