#include "reader/symbols/elf_file.hpp"

#include <absl/cleanup/cleanup.h>
#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <lzma.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "src/base/kernel_file_systems.hpp"

namespace arctrace::reader {
namespace {

// More than any real symbol or string table needs, and than any debug file has. A sparse
// file may claim terabytes, which libelf would allocate and read.
constexpr uint64_t kSectionBytesMax = uint64_t{1} << 29;
constexpr uint64_t kFileBytesMax = uint64_t{8} << 30;
constexpr uint64_t kSparseBytesMax = uint64_t{16} << 20;
constexpr size_t kBuildIdBytesMax = 64;

// Returns the data of a section in this machine's byte order, or as it stands if `raw`;
// null if it has none in the file, or too much.
const Elf_Data* read_section(Elf_Scn* section, bool raw) {
  GElf_Shdr header;
  if (gelf_getshdr(section, &header) == nullptr || header.sh_type == SHT_NOBITS ||
      header.sh_size == 0 || header.sh_size > kSectionBytesMax) {
    return nullptr;
  }
  const Elf_Data* data =
      raw ? elf_rawdata(section, nullptr) : elf_getdata(section, nullptr);
  return data != nullptr && data->d_buf != nullptr ? data : nullptr;
}

std::string to_string(const Elf_Data& data) {
  return {static_cast<const char*>(data.d_buf), data.d_size};
}

// A section in memory; empty (end 0) if it is not loaded.
struct SectionRange {
  uint64_t start = 0, end = 0;
};

std::vector<SectionRange> section_ranges(Elf* elf) {
  size_t count = 0;
  if (elf_getshdrnum(elf, &count) != 0) return {};
  std::vector<SectionRange> ranges(count);
  for (size_t i = 1; i < count; ++i) {
    GElf_Shdr header;
    uint64_t end = 0;
    if (gelf_getshdr(elf_getscn(elf, i), &header) != nullptr &&
        (header.sh_flags & SHF_ALLOC) != 0 &&
        !__builtin_add_overflow(header.sh_addr, header.sh_size, &end)) {
      ranges[i] = {header.sh_addr, end};
    }
  }
  return ranges;
}

}  // namespace

std::string to_hex(const BuildId& build_id) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string hex;
  hex.reserve(build_id.size() * 2);
  for (const std::byte byte : build_id) {
    hex += kDigits[std::to_integer<unsigned>(byte >> 4)];
    hex += kDigits[std::to_integer<unsigned>(byte & std::byte{15})];
  }
  return hex;
}

ElfFile::Open::~Open() {
  elf_end(elf);
  if (fd >= 0) close(fd);
}

absl::StatusOr<ElfFile> ElfFile::open_untrusted(const std::string& path) {
  // The type is checked before the file is opened, because opening a device can have
  // effects. O_NONBLOCK: the file might become a FIFO in between.
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return absl::ErrnoToStatus(errno, path);
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(path + ": not a regular file");
  }
  auto file = std::make_unique<Open>();
  file->fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file->fd < 0 || fstat(file->fd, &status) != 0) {
    return absl::ErrnoToStatus(errno, path);
  }
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(path + ": not a regular file");
  }
  if (status.st_size == 0) return absl::InvalidArgumentError(path + ": empty file");
  // File systems that compress may need less than a file's size, but not so much less.
  constexpr uint64_t kCompressionMax = 32;
  const uint64_t stored = static_cast<uint64_t>(status.st_blocks) * 512;
  if (const auto size = static_cast<uint64_t>(status.st_size);
      size > kFileBytesMax ||
      (size > kSparseBytesMax && size / kCompressionMax > stored)) {
    return absl::InvalidArgumentError(path + ": too large, or nearly all of it a hole");
  }
  if (is_made_up_file(file->fd, status.st_uid == geteuid())) {
    return absl::InvalidArgumentError(path + ": not a file on a disk");
  }
  elf_version(EV_CURRENT);
  file->elf = elf_begin(file->fd, ELF_C_READ, nullptr);
  return checked(std::move(file), path);
}

absl::StatusOr<ElfFile> ElfFile::from_bytes_untrusted(std::string bytes,
                                                      const std::string& name) {
  elf_version(EV_CURRENT);
  auto file = std::make_unique<Open>();
  file->bytes = std::move(bytes);
  file->elf = elf_memory(file->bytes.data(), file->bytes.size());
  return checked(std::move(file), name);
}

absl::StatusOr<ElfFile> ElfFile::checked(std::unique_ptr<Open> open,
                                         const std::string& name) {
  GElf_Ehdr header;
  if (open->elf == nullptr || elf_kind(open->elf) != ELF_K_ELF ||
      gelf_getehdr(open->elf, &header) == nullptr) {
    return absl::InvalidArgumentError(name + ": not an ELF file");
  }
  return ElfFile(std::move(open));
}

bool ElfFile::is_module() const {
  GElf_Ehdr header;
  return gelf_getehdr(handle(), &header) != nullptr &&
         (header.e_type == ET_EXEC || header.e_type == ET_DYN);
}

ElfHeader ElfFile::header() const {
  GElf_Ehdr header;
  if (gelf_getehdr(handle(), &header) == nullptr) return {ET_NONE, EM_NONE, false, 0};
  return {header.e_type, header.e_machine, header.e_ident[EI_CLASS] == ELFCLASS64,
          header.e_entry};
}

void ElfFile::for_each_section(absl::FunctionRef<bool(const ElfSection&)> act) const {
  size_t names = 0;
  if (elf_getshdrstrndx(handle(), &names) != 0) return;
  for (Elf_Scn* section = elf_nextscn(handle(), nullptr); section != nullptr;
       section = elf_nextscn(handle(), section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) continue;
    const char* name = elf_strptr(handle(), names, header.sh_name);
    if (!act({name == nullptr ? "" : name, header.sh_type, header.sh_flags,
              header.sh_addr, header.sh_size})) {
      return;
    }
  }
}

void ElfFile::for_each_segment(absl::FunctionRef<bool(const ElfSegment&)> act) const {
  size_t count = 0;
  if (elf_getphdrnum(handle(), &count) != 0) return;
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(handle(), static_cast<int>(i), &header) == nullptr) return;
    if (!act({header.p_type, header.p_flags, header.p_vaddr, header.p_offset,
              header.p_filesz})) {
      return;
    }
  }
}

void ElfFile::for_each_dynamic_symbol(
    absl::FunctionRef<bool(const ElfDynamicSymbol&)> act) const {
  for (Elf_Scn* section = elf_nextscn(handle(), nullptr); section != nullptr;
       section = elf_nextscn(handle(), section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_DYNSYM) {
      continue;
    }
    Elf_Data* const data = elf_getdata(section, nullptr);
    GElf_Sym symbol;
    for (int i = 0; data != nullptr && gelf_getsym(data, i, &symbol) != nullptr; ++i) {
      const char* name = elf_strptr(handle(), header.sh_link, symbol.st_name);
      if (!act({name == nullptr ? "" : name, symbol.st_value,
                static_cast<uint8_t>(GELF_ST_TYPE(symbol.st_info)),
                symbol.st_shndx != SHN_UNDEF})) {
        return;
      }
    }
  }
}

std::string ElfFile::bytes(uint64_t offset, uint64_t size) const {
  if (offset > size_t{INT64_MAX} || size > kFileBytesMax) return {};
  const Elf_Data* data = elf_getdata_rawchunk(handle(), static_cast<int64_t>(offset),
                                              static_cast<size_t>(size), ELF_T_BYTE);
  return data == nullptr || data->d_buf == nullptr ? std::string() : to_string(*data);
}

BuildId ElfFile::build_id() const {
  const void* bytes = nullptr;
  const ssize_t size = dwelf_elf_gnu_build_id(handle(), &bytes);
  if (size <= 0 || static_cast<size_t>(size) > kBuildIdBytesMax) return {};
  const std::span view(static_cast<const std::byte*>(bytes), static_cast<size_t>(size));
  return {view.begin(), view.end()};
}

std::vector<LoadSegment> ElfFile::load_segments() const {
  std::vector<LoadSegment> segments;
  size_t count = 0;
  if (elf_getphdrnum(handle(), &count) != 0) return segments;
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(handle(), static_cast<int>(i), &header) == nullptr) break;
    uint64_t end = 0;
    if (header.p_type != PT_LOAD ||
        __builtin_add_overflow(header.p_vaddr, header.p_memsz, &end)) {
      continue;
    }
    segments.push_back({header.p_vaddr, end, (header.p_flags & PF_X) != 0});
  }
  return segments;
}

std::optional<DebugLink> ElfFile::debug_link() const {
  GElf_Word crc = 0;
  const char* name = dwelf_elf_gnu_debuglink(handle(), &crc);
  if (name == nullptr) return std::nullopt;
  return DebugLink{name, crc};
}

std::vector<ElfSymbolTable> ElfFile::function_symbols() const {
  std::vector<ElfSymbolTable> tables;
  for (const uint32_t type : {uint32_t{SHT_SYMTAB}, uint32_t{SHT_DYNSYM}}) {
    Elf_Scn* const section = find_section_of_type(type);
    if (section == nullptr) continue;
    if (auto table = symbol_table(section)) tables.push_back(*std::move(table));
  }
  return tables;
}

std::vector<std::string> ElfFile::exported_functions() const {
  std::vector<std::string> names;
  Elf_Scn* const section = find_section_of_type(SHT_DYNSYM);
  if (section == nullptr) return names;
  const std::optional<ElfSymbolTable> table = symbol_table(section);
  if (!table) return names;
  for (const ElfSymbol& symbol : table->symbols) {
    if (symbol.binding != STB_LOCAL) names.emplace_back(&table->names[symbol.name]);
  }
  return names;
}

std::optional<ElfSymbolTable> ElfFile::symbol_table(Elf_Scn* section) const {
  GElf_Shdr header;
  if (gelf_getshdr(section, &header) == nullptr) return std::nullopt;
  Elf_Scn* names_section = elf_getscn(handle(), header.sh_link);
  GElf_Shdr names_header;
  if (names_section == nullptr || gelf_getshdr(names_section, &names_header) == nullptr ||
      names_header.sh_type != SHT_STRTAB) {
    return std::nullopt;
  }
  const Elf_Data* data = read_section(section, false);
  const Elf_Data* names = read_section(names_section, false);
  if (data == nullptr || names == nullptr || data->d_type != ELF_T_SYM) {
    return std::nullopt;
  }

  const std::vector<SectionRange> sections = section_ranges(handle());
  ElfSymbolTable table;
  table.names = to_string(*names);
  table.names += '\0';
  const size_t symbol_bytes = gelf_fsize(handle(), ELF_T_SYM, 1, EV_CURRENT);
  const size_t count = data->d_size / symbol_bytes;
  for (size_t i = 0; i < count; ++i) {
    GElf_Sym symbol;
    // const_cast: libelf's readers take their data as non-const, but do not write it.
    if (gelf_getsym(const_cast<Elf_Data*>(data), static_cast<int>(i), &symbol) ==
        nullptr) {
      break;
    }
    const unsigned type = GELF_ST_TYPE(symbol.st_info);
    // SHN_XINDEX: a section number above 65,279, as in files with a section per function.
    const bool reserved =
        symbol.st_shndx >= SHN_LORESERVE && symbol.st_shndx != SHN_XINDEX;
    if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol.st_shndx == SHN_UNDEF ||
        reserved || symbol.st_name >= table.names.size() ||
        table.names[symbol.st_name] == '\0') {
      continue;
    }
    uint64_t section_end = 0;
    if (symbol.st_shndx < sections.size()) {
      const SectionRange& section_range = sections[symbol.st_shndx];
      if (section_range.start <= symbol.st_value && symbol.st_value < section_range.end) {
        section_end = section_range.end;
      }
    }
    table.symbols.push_back({symbol.st_value, symbol.st_size, section_end, symbol.st_name,
                             static_cast<uint8_t>(GELF_ST_BIND(symbol.st_info))});
  }
  return table;
}

Elf_Scn* ElfFile::find_section(const char* name) const {
  size_t names_index = 0;
  if (elf_getshdrstrndx(handle(), &names_index) != 0) return nullptr;
  for (Elf_Scn* section = elf_nextscn(handle(), nullptr); section != nullptr;
       section = elf_nextscn(handle(), section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) continue;
    const char* found = elf_strptr(handle(), names_index, header.sh_name);
    if (found != nullptr && std::strcmp(found, name) == 0) return section;
  }
  return nullptr;
}

Elf_Scn* ElfFile::find_section_of_type(uint32_t type) const {
  for (Elf_Scn* section = elf_nextscn(handle(), nullptr); section != nullptr;
       section = elf_nextscn(handle(), section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) != nullptr && header.sh_type == type) {
      return section;
    }
  }
  return nullptr;
}

bool ElfFile::has_section(const char* name) const {
  Elf_Scn* section = find_section(name);
  GElf_Shdr header;
  return section != nullptr && gelf_getshdr(section, &header) != nullptr &&
         header.sh_type != SHT_NOBITS;
}

std::optional<std::string> ElfFile::section_bytes(const char* name) const {
  Elf_Scn* section = find_section(name);
  const Elf_Data* data = section != nullptr ? read_section(section, true) : nullptr;
  if (data == nullptr) return std::nullopt;
  return to_string(*data);
}

uint64_t ElfFile::size() const {
  struct stat status {};
  if (open_->fd < 0) return open_->bytes.size();
  return fstat(open_->fd, &status) == 0 ? static_cast<uint64_t>(status.st_size) : 0;
}

std::optional<uint32_t> ElfFile::crc32() const {
  if (open_->fd < 0) return std::nullopt;
  std::array<uint8_t, 1 << 16> chunk{};
  uint32_t crc = 0;
  off_t offset = 0;
  for (;;) {
    const ssize_t size = pread(open_->fd, chunk.data(), chunk.size(), offset);
    if (size < 0) return std::nullopt;
    if (size == 0) return crc;
    // xz and .gnu_debuglink use the same polynomial.
    crc = lzma_crc32(chunk.data(), static_cast<size_t>(size), crc);
    offset += size;
  }
}

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
