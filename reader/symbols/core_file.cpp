#include "reader/symbols/core_file.hpp"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/str_cat.h>
#include <gelf.h>
#include <libelf.h>
#include <unistd.h>

namespace arctrace::reader {

absl::StatusOr<CorePart> find_in_core_untrusted(int fd, const std::string& name,
                                                uint64_t magic) {
  const auto refuse = [&name](const char* why) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", why));
  };
  elf_version(EV_CURRENT);
  Elf* elf = elf_begin(fd, ELF_C_READ, nullptr);
  const absl::Cleanup closer = [elf] { elf_end(elf); };
  GElf_Ehdr header{};
  if (elf == nullptr || gelf_getehdr(elf, &header) == nullptr ||
      header.e_type != ET_CORE) {
    return refuse("neither a trace buffer nor a core file");
  }
  size_t count = 0;
  if (elf_getphdrnum(elf, &count) != 0) return refuse("a damaged core file");
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr segment{};
    if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr) break;
    uint64_t first = 0;
    if (segment.p_type != PT_LOAD || segment.p_filesz < sizeof first ||
        pread(fd, &first, sizeof first, static_cast<off_t>(segment.p_offset)) !=
            static_cast<ssize_t>(sizeof first) ||
        first != magic) {
      continue;
    }
    return CorePart{segment.p_offset, segment.p_filesz};
  }
  return refuse(
      "no trace buffer in this core; a core holds it only if bit 3 of "
      "/proc/PID/coredump_filter was set");
}

}  // namespace arctrace::reader
