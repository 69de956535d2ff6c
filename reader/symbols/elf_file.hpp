// One ELF file, read through libelf: its identity (build-id), where it is loaded, and its
// function symbols; of a core file, a part of a process's memory. Every byte of it is
// untrusted, because the owner of the program wrote it.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// These are libelf's types; only this layer and the recorder include its headers.
struct Elf;
struct Elf_Scn;

namespace arctrace::reader {

using BuildId = std::vector<std::byte>;

// Returns lower-case hexadecimal digits, two per byte.
std::string to_hex(const BuildId& build_id);

// A PT_LOAD program header. Addresses are the file's own (run-time address - bias).
struct LoadSegment {
  uint64_t start, end;
  bool executable;
};

// A defined function symbol (STT_FUNC, STT_GNU_IFUNC).
struct ElfSymbol {
  uint64_t address;
  uint64_t size;         // bytes; 0: the symbol table does not say
  uint64_t section_end;  // the end of its section; 0: not known
  uint32_t name;         // offset in ElfSymbolTable::names
  uint8_t binding;       // STB_*
};

struct ElfSymbolTable {
  std::string names;  // each ends with a zero byte, and so does the string
  std::vector<ElfSymbol> symbols;
};

// The section .gnu_debuglink: the separate debug file's name and CRC-32.
struct DebugLink {
  std::string name;
  uint32_t crc;
};

// The file's own header, with the constants of <elf.h>.
struct ElfHeader {
  uint16_t type;     // ET_*
  uint16_t machine;  // EM_*
  bool is_64_bit;
  uint64_t entry;  // the address of the first instruction
};

struct ElfSection {
  const char* name;  // "" if it can't be read
  uint32_t type;     // SHT_*
  uint64_t flags;    // SHF_*
  uint64_t address, size;
};

struct ElfSegment {
  uint32_t type;   // PT_*
  uint32_t flags;  // PF_*
  uint64_t address, offset, file_size;
};

struct ElfDynamicSymbol {
  const char* name;  // "" if it can't be read
  uint64_t address;
  uint8_t type;  // STT_*
  bool is_defined;
};

// Not thread-safe. A moved-from object may only be destroyed.
class ElfFile {
 public:
  // Opens an ELF file of any kind. Only regular files are read (never a FIFO, a device,
  // or an empty file of /proc), and by pread instead of a mapping, so that a file which
  // shrinks meanwhile gives errors and not SIGBUS.
  static absl::StatusOr<ElfFile> open_untrusted(const std::string& path);

  // Opens an ELF file in memory. `name` stands for the path in messages.
  static absl::StatusOr<ElfFile> from_bytes_untrusted(std::string bytes,
                                                      const std::string& name);

  // Whether the file is an executable or a shared object, or the debug file of one, so
  // that its addresses have a meaning.
  bool is_module() const;

  ElfHeader header() const;

  // These call act() for each section or segment, in the order of the file, until it
  // returns false. Texts are valid as long as this object.
  void for_each_section(absl::FunctionRef<bool(const ElfSection&)> act) const;
  void for_each_segment(absl::FunctionRef<bool(const ElfSegment&)> act) const;
  // Calls act() for the symbols of each .dynsym.
  void for_each_dynamic_symbol(
      absl::FunctionRef<bool(const ElfDynamicSymbol&)> act) const;

  // Returns so many bytes of the file from `offset` on; empty if not all of them exist.
  std::string bytes(uint64_t offset, uint64_t size) const;

  // Returns an empty id if the file has none, or one that does not have 1 to 64 bytes.
  BuildId build_id() const;

  std::vector<LoadSegment> load_segments() const;

  std::optional<DebugLink> debug_link() const;

  // Returns the symbols of the first .symtab and of the first .dynsym, if they are
  // readable. A second one of the same type breaks the ELF standard, and could make small
  // files expensive.
  std::vector<ElfSymbolTable> function_symbols() const;

  // Returns the names under which .dynsym offers functions to other modules.
  std::vector<std::string> exported_functions() const;

  bool has_section(const char* name) const;

  // Returns the bytes of a section as they stand in the file; nullopt if there is no such
  // section, or it cannot be read.
  std::optional<std::string> section_bytes(const char* name) const;

  // Returns the CRC-32 of the whole file, as .gnu_debuglink has it; nullopt if it cannot
  // be read.
  std::optional<uint32_t> crc32() const;

  // Returns the size in bytes.
  uint64_t size() const;

  // The handle for libdw. It belongs to this object, and stays where it is if this object
  // is moved.
  Elf* handle() const { return open_->elf; }

 private:
  // libelf reads from the descriptor or the bytes for as long as `elf` lives.
  struct Open {
    Open() = default;
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;
    ~Open();

    int fd = -1;
    std::string bytes;
    Elf* elf = nullptr;
  };

  explicit ElfFile(std::unique_ptr<Open> open) : open_(std::move(open)) {}
  static absl::StatusOr<ElfFile> checked(std::unique_ptr<Open> open,
                                         const std::string& name);
  std::optional<ElfSymbolTable> symbol_table(Elf_Scn* section) const;
  Elf_Scn* find_section(const char* name) const;
  // Returns the first section with this SHT_*; nullptr: none.
  Elf_Scn* find_section_of_type(uint32_t type) const;

  std::unique_ptr<Open> open_;
};

// The place of a part of a process's memory in its core file.
struct CorePart {
  uint64_t offset;  // in the file
  uint64_t size;    // bytes that the file has
};

// Finds the first loaded segment of the core that begins with the 8 bytes of `magic`.
// `name` is for messages. InvalidArgument: the file is not a core, or has no such
// segment.
absl::StatusOr<CorePart> find_in_core_untrusted(int fd, const std::string& name,
                                                uint64_t magic);

}  // namespace arctrace::reader
