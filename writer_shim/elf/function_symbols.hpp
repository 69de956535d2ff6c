// Where a module's functions begin, by its symbols: for those that no unwind tables know.
#pragma once

#include <link.h>
#include <sys/mman.h>

#include <cstdint>

#include "src/base/raw_syscall.hpp"
#include "writer_shim/elf/elf_sections.hpp"
#include "writer_shim/elf/module_slots.hpp"

namespace arctrace::shim {

// A bit for each byte of the module's code. The file is read when it is first asked for.
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
