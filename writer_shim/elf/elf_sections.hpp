// Reads the sections of a module's file, of which the loader maps only a part.
#pragma once

#include <elf.h>
#include <link.h>
#include <sys/mman.h>

#include <cstdint>

#include "src/api/shim_interface.h"
#include "src/base/memory.hpp"
#include "src/base/raw_syscall.hpp"
#include "src/base/text.hpp"
#include "writer_shim/elf/module_slots.hpp"

namespace arctrace::shim {

// Texts that each end with a zero byte.
struct StringTable {
  const char* bytes = nullptr;
  uint64_t size = 0;

  // The text at `offset`; null if it does not end here.
  const char* text(uint64_t offset) const {
    if (offset >= size || bytes[size - 1] != '\0') return nullptr;
    return bytes + offset;
  }
};

// Memory for a part of a file.
struct FileSpace {
  char* bytes = nullptr;
  uint64_t size = 0;
};

// A copy of a part of a file. If the file shrinks meanwhile, the rest is zeros.
class FilePart {
 public:
  FilePart() = default;
  // The copy is in `space` if it fits there, and in memory of its own otherwise.
  FilePart(int fd, uint64_t offset, uint64_t size, uint64_t file_size,
           const FileSpace& space = {}) {
    if (size == 0 || offset > file_size || size > file_size - offset) return;
    is_mapped_ = size > space.size;
    if (is_mapped_) {
      bytes_ = static_cast<char*>(
          sys::map(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1));
      if (bytes_ == nullptr) return;
    } else {
      bytes_ = space.bytes;
      fill_zero(bytes_, size);
    }
    size_ = size;
    for (uint64_t done = 0; done < size;) {
      const long n = sys::pread(fd, bytes_ + done, size - done, offset + done);
      if (n <= 0) return;
      done += static_cast<uint64_t>(n);
    }
  }
  ~FilePart() {
    if (bytes_ != nullptr && is_mapped_) {
      raw_syscall(SYS_munmap, sys::pointer_argument(bytes_), static_cast<long>(size_));
    }
  }
  FilePart(const FilePart&) = delete;
  FilePart& operator=(const FilePart&) = delete;

  // Keeps the memory mapped for good, and returns it. REQUIRES: there was no `space`.
  StringTable keep() {
    const StringTable kept = strings();
    bytes_ = nullptr;
    size_ = 0;
    return kept;
  }

  // The texts, valid as long as this object lives.
  StringTable strings() const { return {bytes_, size_}; }

  template <class T>
  const T* items() const {
    return reinterpret_cast<const T*>(bytes_);
  }
  template <class T>
  uint64_t count() const {
    return size_ / sizeof(T);
  }
  // The text at `offset`; null if it does not end here.
  const char* text(uint64_t offset) const { return strings().text(offset); }

 private:
  char* bytes_ = nullptr;
  uint64_t size_ = 0;
  bool is_mapped_ = false;
};

// The section in which -fpatchable-function-entry notes the addresses of its NOP areas.
inline constexpr char kPatchableSection[] = "__patchable_function_entries";
// The section in which clang's -fxray-instrument notes its sleds.
inline constexpr char kXraySection[] = "xray_instr_map";

// The file of a loaded module.
class ModuleFile {
 public:
  // The system's own libraries have no functions with hooks, and are many: they need not
  // be read.
  static bool is_of_system(const dl_phdr_info& info) {
    return starts_with(info.dlpi_name, "/lib/") ||
           starts_with(info.dlpi_name, "/usr/lib/") ||
           starts_with(info.dlpi_name, "/lib64/");
  }
  // Neither have the shim and the library through which it writes. The program, which the
  // loader gives no name, is neither: unit tests have the shim's code in their program.
  static bool is_own(const dl_phdr_info& info, const ModuleImage& image) {
    const auto contains = [&image](auto* function) {
      return image.range.contains(reinterpret_cast<uintptr_t>(function));
    };
    return info.dlpi_name[0] != '\0' &&
           (contains(&read_module) || contains(&arctrace_shim_patterns_matched));
  }

  ModuleFile(const dl_phdr_info& info, bool is_program) : path_(info.dlpi_name) {
    if (is_program) {
      const long n = sys::readlink(kProgram, program_, sizeof program_ - 1);
      path_ = program_;
      if (n <= 0) return;
      program_[n] = '\0';
    } else if (!has_directory(path_)) {
      return;  // the vdso
    }
    descriptor_ =
        static_cast<int>(sys::open(is_program ? kProgram : path_, O_RDONLY | O_CLOEXEC));
  }
  ~ModuleFile() {
    if (descriptor_ >= 0) sys::close(descriptor_);
  }
  ModuleFile(const ModuleFile&) = delete;
  ModuleFile& operator=(const ModuleFile&) = delete;

  int descriptor() const { return descriptor_; }  // negative: the file cannot be opened
  const char* path() const { return path_; }

 private:
  static constexpr const char* kProgram = "/proc/self/exe";
  static bool has_directory(const char* path) {
    while (*path != '\0' && *path != '/') ++path;
    return *path == '/';
  }
  char program_[1024] = {};
  const char* path_;
  int descriptor_ = -1;
};

// Space for the headers of a file's sections, enough for most files. Memory that is
// mapped for each file would cost a fault for each part.
struct alignas(ElfW(Shdr)) SectionSpace {
  char head[sizeof(ElfW(Ehdr))];
  char headers[40 * sizeof(ElfW(Shdr))];
  char names[512];
};
extern SectionSpace section_space;

// The headers of a file's sections. There is one such object at a time, because modules
// are read under the loader's lock.
class ElfSections {
 public:
  explicit ElfSections(int fd)
      : size_(size_of(fd)),
        head_(fd, 0, sizeof section_space.head, size_,
              {section_space.head, sizeof section_space.head}),
        headers_(fd, table_offset(), table_size(), size_,
                 {section_space.headers, sizeof section_space.headers}),
        names_(fd, names_header().sh_offset, names_header().sh_size, size_,
               {section_space.names, sizeof section_space.names}) {}

  uint64_t file_size() const { return size_; }
  const FilePart& headers() const { return headers_; }  // ElfW(Shdr) each

  // The section of that name; null: there is none.
  const ElfW(Shdr) * find(const char* name) const {
    for (uint64_t i = 0; i < headers_.count<ElfW(Shdr)>(); ++i) {
      const ElfW(Shdr)& header = headers_.items<ElfW(Shdr)>()[i];
      const char* found = names_.text(header.sh_name);
      if (found != nullptr && equal(found, name)) return &header;
    }
    return nullptr;
  }
  // The full symbol table if there is one, else the dynamic one; null: neither.
  const ElfW(Shdr) * symbols() const {
    const ElfW(Shdr)* found = nullptr;
    for (uint64_t i = 0; i < headers_.count<ElfW(Shdr)>(); ++i) {
      const ElfW(Shdr)& section = headers_.items<ElfW(Shdr)>()[i];
      if (section.sh_type == SHT_SYMTAB) return &section;
      if (section.sh_type == SHT_DYNSYM) found = &section;
    }
    return found;
  }

 private:
  static uint64_t size_of(int fd) {
    struct stat status {};
    const bool is_file = sys::stat_fd(fd, &status) == 0 && S_ISREG(status.st_mode);
    return is_file ? static_cast<uint64_t>(status.st_size) : 0;
  }
  const ElfW(Ehdr) * head() const {
    return head_.count<ElfW(Ehdr)>() == 0 ? nullptr : head_.items<ElfW(Ehdr)>();
  }
  uint64_t table_offset() const { return head() == nullptr ? 0 : head()->e_shoff; }
  uint64_t table_size() const {
    if (head() == nullptr || head()->e_shentsize != sizeof(ElfW(Shdr))) return 0;
    return uint64_t{head()->e_shnum} * sizeof(ElfW(Shdr));
  }
  ElfW(Shdr) names_header() const {
    if (head() == nullptr || head()->e_shstrndx >= headers_.count<ElfW(Shdr)>())
      return {};
    return headers_.items<ElfW(Shdr)>()[head()->e_shstrndx];
  }

  uint64_t size_;
  FilePart head_;
  FilePart headers_;
  FilePart names_;
};

// The beginnings of a module's functions by its symbols, for functions that no unwind
// tables have: a bit for each byte of the module's code. The file is read at the first
// query.
class FunctionSymbols {
 public:
  FunctionSymbols(const ModuleImage& image, const ElfSections& sections, int fd)
      : image_(image), sections_(sections), fd_(fd) {}
  ~FunctionSymbols() {
    if (bits_ != nullptr) {
      raw_syscall(SYS_munmap, sys::pointer_argument(bits_), static_cast<long>(size()));
    }
  }
  FunctionSymbols(const FunctionSymbols&) = delete;
  FunctionSymbols& operator=(const FunctionSymbols&) = delete;

  // Whether a function begins at this address; false if the symbols are stripped.
  bool begins_at(uintptr_t address) {
    if (!is_read_) read();
    if (bits_ == nullptr || !image_.code.contains(address)) return false;
    const uintptr_t offset = address - image_.code.low;
    return (bits_[offset / 8] >> (offset % 8) & 1) != 0;
  }

 private:
  uint64_t size() const { return (image_.code.high - image_.code.low) / 8 + 1; }

  void read() {
    is_read_ = true;
    const ElfW(Shdr)* table = sections_.symbols();
    if (table == nullptr) return;
    const FilePart symbols(fd_, table->sh_offset, table->sh_size, sections_.file_size());
    bits_ = static_cast<unsigned char*>(
        sys::map(size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1));
    if (bits_ == nullptr) return;
    for (uint64_t i = 0; i < symbols.count<ElfW(Sym)>(); ++i) {
      const ElfW(Sym)& symbol = symbols.items<ElfW(Sym)>()[i];
      const uintptr_t address = image_.bias + symbol.st_value;
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || !image_.code.contains(address)) {
        continue;
      }
      const uintptr_t offset = address - image_.code.low;
      bits_[offset / 8] = static_cast<unsigned char>(bits_[offset / 8] | 1 << offset % 8);
    }
  }

  const ModuleImage& image_;
  const ElfSections& sections_;
  int fd_;
  bool is_read_ = false;
  unsigned char* bits_ = nullptr;
};

}  // namespace arctrace::shim
