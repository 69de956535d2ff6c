// Searches modules' tables of symbols. It trusts them as far as the loader does, which
// has used the same ones.
#include "writer_shim/elf/symbol_search.hpp"

#include <elf.h>
#include <limits.h>
#include <link.h>
#include <sys/auxv.h>

#include <cstddef>
#include <cstdint>

#include "src/base/large_table.hpp"
#include "src/base/raw_syscall.hpp"
#include "src/base/text.hpp"
#include "src/os/process_facts.hpp"

namespace arctrace::shim {

alignas(4096) ARCTRACE_LARGE_TABLE constinit SectionSpace section_space{};

namespace {

// A string table that is retained. A file that is written anew, in its place or under its
// name, is another file.
struct RetainedStrings {
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

// With so many retained, others are copied each time.
constexpr size_t kRetainedMax = 4096;
ARCTRACE_LARGE_TABLE constinit RetainedStrings retained[kRetainedMax]{};
size_t retained_count;

}  // namespace

StringTable retained_strings(int fd, const struct stat& status,
                             const ElfW(Shdr) & section) {
  for (size_t i = 0; i < retained_count; ++i) {
    if (retained[i].is_of(status, section)) return retained[i].strings;
  }
  FilePart part(fd, section.sh_offset, section.sh_size,
                static_cast<uint64_t>(status.st_size));
  const StringTable strings = part.keep();
  // Without memory, this is tried again when the file is loaded again.
  if (strings.size != 0 && retained_count < kRetainedMax) {
    retained[retained_count++] = {status.st_dev,  status.st_ino,     status.st_size,
                                  status.st_ctim, section.sh_offset, strings};
  }
  return strings;
}

namespace {

constexpr uint16_t kHiddenVersion = 0x8000;

uint32_t gnu_hash_of(const char* name) {
  uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

uint32_t sysv_hash_of(const char* name) {
  uint32_t hash = 0;
  for (; *name != '\0'; ++name) {
    hash = (hash << 4) + static_cast<unsigned char>(*name);
    const uint32_t high = hash & 0xF0000000;
    hash ^= high >> 24;
    hash &= ~high;
  }
  return hash;
}

// Whether the symbol is the one that find_in_module() searches for.
bool is_wanted(const ModuleImage& image, uint32_t index, const char* name,
               uintptr_t address) {
  const ElfW(Sym)& symbol = image.symbols[index];
  const auto type = ELF64_ST_TYPE(symbol.st_info);
  if (symbol.st_shndx == SHN_UNDEF || symbol.st_value == 0 || type == STT_TLS ||
      !equal(image.strings + symbol.st_name, name)) {
    return false;
  }
  if (address != 0) return image.bias + symbol.st_value == address;
  return image.versions == nullptr || (image.versions[index] & kHiddenVersion) == 0;
}

// The index of the wanted symbol; 0, which no symbol has: there is none.
uint32_t search_gnu_hash(const ModuleImage& image, const char* name, uintptr_t address) {
  const uint32_t bucket_count = image.gnu_hash[0];
  const uint32_t first = image.gnu_hash[1];
  const uint32_t filter_count = image.gnu_hash[2];
  const uint32_t shift = image.gnu_hash[3];
  if (bucket_count == 0 || filter_count == 0) return 0;
  const auto* filter = reinterpret_cast<const uint64_t*>(image.gnu_hash + 4);
  const auto* buckets = reinterpret_cast<const uint32_t*>(filter + filter_count);
  const uint32_t* chains = buckets + bucket_count;
  const uint32_t hash = gnu_hash_of(name);
  const uint64_t bits = uint64_t{1} << (hash % 64) | uint64_t{1}
                                                         << ((hash >> shift) % 64);
  if ((filter[hash / 64 % filter_count] & bits) != bits) return 0;
  uint32_t index = buckets[hash % bucket_count];
  if (index < first) return 0;
  for (;; ++index) {
    const uint32_t found = chains[index - first];
    if ((found | 1) == (hash | 1) && is_wanted(image, index, name, address)) return index;
    if ((found & 1) != 0) return 0;
  }
}

uint32_t search_sysv_hash(const ModuleImage& image, const char* name, uintptr_t address) {
  const uint32_t bucket_count = image.sysv_hash[0];
  if (bucket_count == 0) return 0;
  const uint32_t* buckets = image.sysv_hash + 2;
  const uint32_t* chains = buckets + bucket_count;
  uint32_t index = buckets[sysv_hash_of(name) % bucket_count];
  while (index != STN_UNDEF && !is_wanted(image, index, name, address)) {
    index = chains[index];
  }
  return index;
}

// The function that the resolver of an indirect function chooses.
uintptr_t resolved(uintptr_t resolver) {
#if defined(__aarch64__)
  // A resolver's arguments by the ABI: AT_HWCAP with a mark, and all of them.
  constexpr uint64_t kHasMore = uint64_t{1} << 62;
  const struct {
    unsigned long size, hwcap, hwcap2;
  } more = {sizeof more, getauxval(AT_HWCAP), getauxval(AT_HWCAP2)};
  return reinterpret_cast<uintptr_t (*)(uint64_t, const void*)>(resolver)(
      more.hwcap | kHasMore, &more);
#else
  return reinterpret_cast<uintptr_t (*)()>(resolver)();
#endif
}

bool is_shim(const ModuleImage& image) {
  return image.range.contains(reinterpret_cast<uintptr_t>(&is_shim));
}

struct Search {
  const char* name;
  bool skips_shim;
  bool has_begun;
  uint32_t modules_left;  // those that may still be searched
  ModuleSymbol found{};
};

int search_module(dl_phdr_info* info, size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  if (search.modules_left-- == 0) return 1;
  ModuleImage image;
  if (!read_module(*info, image)) return 0;
  const uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);
  if (image.range.contains(vdso)) return 0;  // no search by name gets to the shim
  if (search.skips_shim && is_shim(image)) {
    search.has_begun = true;
    return 0;
  }
  if (!search.has_begun) return 0;
  search.found = find_in_module(image, search.name);
  return search.found.address != 0 ? 1 : 0;
}

// The search ends at the shim, or at libc, whichever comes first.
int find_libc(dl_phdr_info* info, size_t, void* is_first) {
  ModuleImage image;
  if (!read_module(*info, image)) return 0;
  if (is_shim(image)) return 1;
  *static_cast<bool*>(is_first) =
      image.range.contains(reinterpret_cast<uintptr_t>(gnu_get_libc_version));
  return *static_cast<bool*>(is_first) ? 1 : 0;
}

bool libc_comes_before_shim() {
  bool result = false;
  dl_iterate_phdr(find_libc, &result);
  return result;
}

int find_shim(dl_phdr_info* info, size_t, void* found) {
  auto& image = *static_cast<ModuleImage*>(found);
  return read_module(*info, image) && is_shim(image) ? 1 : 0;
}

ModuleImage shim_image() {
  ModuleImage image;
  return dl_iterate_phdr(find_shim, &image) != 0 ? image : ModuleImage{};
}

int count_module(dl_phdr_info*, size_t, void* count) {
  ++*static_cast<uint32_t*>(count);
  return 0;
}

uint32_t module_count() {
  uint32_t count = 0;
  dl_iterate_phdr(count_module, &count);
  return count;
}

struct FileSearch {
  uintptr_t address;
  const char* name;
  bool is_program = true;  // the first module
  FunctionFile found{};
};

const char* program_path() {
  ARCTRACE_LARGE_TABLE static char path[PATH_MAX];
  if (path[0] == '\0') sys::readlink("/proc/self/exe", path, sizeof path - 1);
  return path;
}

int search_file(dl_phdr_info* info, size_t, void* data) {
  auto& search = *static_cast<FileSearch*>(data);
  const bool is_program = search.is_program;
  search.is_program = false;
  ModuleImage image;
  if (!read_module(*info, image) || !image.range.contains(search.address)) return 0;
  search.found = {is_program ? program_path() : info->dlpi_name,
                  find_in_module(image, search.name, search.address).size, image.range};
  return 1;
}

}  // namespace

ModuleSymbol find_in_module(const ModuleImage& image, const char* name,
                            uintptr_t address) {
  uint32_t index = 0;
  if (image.gnu_hash != nullptr) {
    index = search_gnu_hash(image, name, address);
  } else if (image.sysv_hash != nullptr) {
    index = search_sysv_hash(image, name, address);
  }
  if (index == 0) return {};
  const ElfW(Sym)& symbol = image.symbols[index];
  const uintptr_t bias = symbol.st_shndx == SHN_ABS ? 0 : image.bias;
  return {bias + symbol.st_value, symbol.st_size,
          ELF64_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC};
}

SymbolRange symbols_for_others(const ModuleImage& image) {
  if (image.gnu_hash == nullptr) {
    return {0, image.sysv_hash == nullptr ? 0 : image.sysv_hash[1]};
  }
  const uint32_t bucket_count = image.gnu_hash[0];
  const uint32_t first = image.gnu_hash[1];
  const uint32_t* buckets = image.gnu_hash + 4 + uint64_t{image.gnu_hash[2]} * 2;
  const uint32_t* chains = buckets + bucket_count;
  uint32_t last = 0;
  for (uint32_t i = 0; i < bucket_count; ++i) {
    if (buckets[i] > last) last = buckets[i];
  }
  if (last < first) return {first, first};
  while ((chains[last - first] & 1) == 0) ++last;
  return {first, last + 1};
}

uintptr_t find_function(const char* name, SearchFrom from) {
  // The first search is made while the program starts.
  static const uint32_t modules_at_start = module_count();
  const bool is_next = from == SearchFrom::kNext;
  Search search{name, is_next, !is_next || is_late(),
                is_next ? UINT32_MAX : modules_at_start};
  dl_iterate_phdr(search_module, &search);
  // This is outside of the loader's lock, because a resolver is the module's own code.
  return search.found.is_resolver ? resolved(search.found.address) : search.found.address;
}

bool is_late() {
  static const bool result = libc_comes_before_shim();
  return result;
}

uintptr_t own_function(const char* name) {
  static const ModuleImage image = shim_image();
  return find_in_module(image, name).address;
}

FunctionFile file_of_function(uintptr_t address, const char* name) {
  FileSearch search{address, name};
  dl_iterate_phdr(search_file, &search);
  return search.found;
}

}  // namespace arctrace::shim
