// String tables of files whose names are kept for as long as the process lives, because
// hooks may read them at any time.
#pragma once

#include <sys/stat.h>

#include "writer_shim/elf/elf_sections.hpp"

namespace arctrace::shim {

// The string table that `section` describes of the file behind `fd`, which has `status`.
// Each file has it in memory once, however often it is loaded again. To be called by one
// thread at a time. Empty: it is not there, or there is no memory.
StringTable kept_strings(int fd, const struct stat& status, const ElfW(Shdr) & section);

}  // namespace arctrace::shim
