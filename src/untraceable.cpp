#include "src/untraceable.hpp"

#include <arctrace/format.h>
#include <elf.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

#include "src/memory.hpp"
#include "src/raw_syscall.hpp"

namespace arctrace {
namespace {

#if defined(__x86_64__)
constexpr Elf64_Half kOwnMachine = EM_X86_64;
#else
constexpr Elf64_Half kOwnMachine = EM_AARCH64;
#endif

constexpr int kScriptsMax = 5;      // within one another, as the kernel has it
constexpr size_t kHeadSize = 256;   // of a script's first line
constexpr int kSegmentsMax = 256;   // more than any program has
constexpr int kDynamicsMax = 4096;  // entries

class File {
 public:
  explicit File(const char* path)
      : fd_(static_cast<int>(sys::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK))) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (is_open()) sys::close(fd_);
  }
  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  template <class T>
  bool read(T& out, uint64_t offset) const {
    return sys::pread(fd_, &out, sizeof out, offset) == static_cast<long>(sizeof out);
  }

 private:
  int fd_;
};

// The interpreter that a script's first line names, as the kernel reads it; false: it is
// no script. `head` holds the line, and then the name.
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

// A position-independent program says so; the loader itself is a library.
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

bool is_static(const File& file, const Elf64_Ehdr& header) {
  bool result = header.e_type == ET_EXEC;
  for (int i = 0; i < header.e_phnum && i < kSegmentsMax; ++i) {
    Elf64_Phdr segment;
    if (!file.read(segment, header.e_phoff + static_cast<uint64_t>(i) * sizeof segment)) {
      return false;
    }
    if (segment.p_type == PT_INTERP) return false;
    if (segment.p_type == PT_DYNAMIC && header.e_type == ET_DYN) {
      result = is_program(file, segment);
    }
  }
  return result;
}

bool gives_rights(const File& file) {
  struct statfs system {};
  return raw_syscall(SYS_fstatfs, file.fd(), sys::pointer_argument(&system)) == 0 &&
         (system.f_flags & ST_NOSUID) == 0 &&
         raw_syscall(SYS_prctl, PR_GET_NO_NEW_PRIVS) != 1;
}

// Whether it runs with rights that who starts it has not: then the loader ignores
// LD_PRELOAD.
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

uint32_t why_untraceable(const char* path) {
  char head[kHeadSize + 1];
  for (int i = 0; i < kScriptsMax; ++i) {
    const File file(path);
    if (!file.is_open()) return 0;
    if (interpreter_of(file, head)) {
      path = head;
      continue;
    }
    Elf64_Ehdr header;
    if (!file.read(header, 0) || __builtin_memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
      return 0;
    }
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kOwnMachine) {
      return ARCTRACE_UNTRACED_ARCHITECTURE;
    }
    if (is_static(file, header)) return ARCTRACE_UNTRACED_STATIC;
    return raised_rights(file);
  }
  return 0;
}

}  // namespace arctrace
