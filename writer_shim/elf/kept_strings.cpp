#include "writer_shim/elf/kept_strings.hpp"

#include <cstddef>
#include <cstdint>

namespace arctrace::shim {
namespace {

// A file that is written anew, in its place or under its name, is another one.
struct Kept {
  dev_t device;
  ino_t inode;
  off_t size;
  timespec changed;
  uint64_t offset;
  StringTable strings;

  bool is_of(const struct stat& status, const ElfW(Shdr) & section) const {
    return device == status.st_dev && inode == status.st_ino && size == status.st_size &&
           changed.tv_sec == status.st_ctim.tv_sec &&
           changed.tv_nsec == status.st_ctim.tv_nsec && offset == section.sh_offset;
  }
};

constexpr size_t kKeptMax = 4096;  // what is read when so many are kept is kept each time
constinit Kept kept[kKeptMax]{};
size_t kept_count;

}  // namespace

StringTable kept_strings(int fd, const struct stat& status, const ElfW(Shdr) & section) {
  for (size_t i = 0; i < kept_count; ++i) {
    if (kept[i].is_of(status, section)) return kept[i].strings;
  }
  FilePart part(fd, section.sh_offset, section.sh_size,
                static_cast<uint64_t>(status.st_size));
  const StringTable strings = part.keep();
  // Without memory it is tried again when the file is loaded again.
  if (strings.size != 0 && kept_count < kKeptMax) {
    kept[kept_count++] = {status.st_dev,  status.st_ino,     status.st_size,
                          status.st_ctim, section.sh_offset, strings};
  }
  return strings;
}

}  // namespace arctrace::shim
