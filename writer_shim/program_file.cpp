#include "writer_shim/program_file.hpp"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>

#include "src/memory.hpp"
#include "src/raw_syscall.hpp"
#include "writer_shim/machine.hpp"

namespace arctrace::shim {
namespace {

constexpr int kScriptsMax = 5;  // within one another, as the kernel has it
constexpr size_t kHeadSize = 1024;

// Does not wait where the path is a pipe's.
int open_file(int folder, const char* path) {
  return static_cast<int>(raw_syscall(SYS_openat, folder, sys::pointer_argument(path),
                                      O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
}

// As libc's execvp: the first file of that name that can be executed. False: none.
bool look_up(const char* name, char (&found)[PATH_MAX]) {
  const char* folders = getenv("PATH");
  if (folders == nullptr) folders = "/bin:/usr/bin";
  const size_t name_length = text_length(name, PATH_MAX);
  for (;;) {
    size_t length = 0;
    while (folders[length] != '\0' && folders[length] != ':') ++length;
    if (length + 1 + name_length < PATH_MAX) {
      copy_bytes(found, folders, length);
      size_t at = length;
      if (length != 0) found[at++] = '/';
      copy_bytes(found + at, name, name_length + 1);
      if (raw_syscall(SYS_faccessat, AT_FDCWD, sys::pointer_argument(found), X_OK) == 0) {
        return true;
      }
    }
    if (folders[length] == '\0') return false;
    folders += length + 1;
  }
}

bool has_slash(const char* path) {
  while (*path != '\0' && *path != '/') ++path;
  return *path != '\0';
}

// The interpreter that a script's head names, ended by a zero in its place; null: none.
char* interpreter_of(char* head, size_t size) {
  if (size < 3 || head[0] != '#' || head[1] != '!') return nullptr;
  size_t begin = 2;
  while (begin < size && (head[begin] == ' ' || head[begin] == '\t')) ++begin;
  size_t end = begin;
  while (end < size && head[end] != ' ' && head[end] != '\t' && head[end] != '\n' &&
         head[end] != '\0') {
    ++end;
  }
  if (end == size || end == begin) return nullptr;
  head[end] = '\0';
  return head + begin;
}

template <class Header, class Segment>
bool names_loader(const char* head, size_t size) {
  Header header;
  if (size < sizeof header) return false;
  copy_bytes(&header, head, sizeof header);
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    const uint64_t offset = uint64_t{header.e_phoff} + i * sizeof(Segment);
    Segment segment;
    if (offset > size || size - offset < sizeof segment) return false;
    copy_bytes(&segment, head + offset, sizeof segment);
    if (segment.p_type == PT_INTERP) return true;
  }
  return false;
}

bool is_foreign(const char* head, size_t size) {
  Elf32_Ehdr start;  // the fields that are looked at stand alike in both sizes
  if (size < sizeof start) return false;
  copy_bytes(&start, head, sizeof start);
  for (int i = 0; i < SELFMAG; ++i) {
    if (start.e_ident[i] != static_cast<unsigned char>(ELFMAG[i])) return false;
  }
  if (start.e_ident[EI_DATA] != ELFDATA2LSB) return true;
  if (start.e_ident[EI_CLASS] == ELFCLASS32) {
    return names_loader<Elf32_Ehdr, Elf32_Phdr>(head, size);
  }
  return start.e_machine != machine::kElfMachine &&
         names_loader<Elf64_Ehdr, Elf64_Phdr>(head, size);
}

}  // namespace

bool has_foreign_loader(const ProgramFile& file) {
  if (file.path == nullptr) return false;
  char found[PATH_MAX];
  char head[kHeadSize];
  int folder = file.folder;
  const char* path = file.path;
  if (file.is_looked_up && !has_slash(path)) {
    if (!look_up(path, found)) return false;
    path = found;
  }
  for (int i = 0; i < kScriptsMax; ++i) {
    const bool is_open = path[0] == '\0';
    const int fd = is_open ? folder : open_file(folder, path);
    if (fd < 0) return false;
    const long size = sys::pread(fd, head, sizeof head, 0);
    if (!is_open) sys::close(fd);
    if (size <= 0) return false;
    path = interpreter_of(head, static_cast<size_t>(size));
    if (path == nullptr) return is_foreign(head, static_cast<size_t>(size));
    folder = AT_FDCWD;
  }
  return false;
}

}  // namespace arctrace::shim
