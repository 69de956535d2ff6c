// The flags and arguments of functions, in a table by address that hooks read without a
// lock: it only grows, and changes of modules come one at a time, under the loader's
// lock.
#include "writer_shim/filter/function_filter.hpp"

#include <elf.h>
#include <link.h>
#include <sys/mman.h>

#include "src/api/shim_interface.h"
#include "src/base/large_table.hpp"
#include "src/base/raw_syscall.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/base/text.hpp"
#include "writer_shim/elf/elf_sections.hpp"
#include "writer_shim/elf/module_slots.hpp"
#include "writer_shim/elf/symbol_search.hpp"
#include "writer_shim/filter/function_patterns.hpp"
#include "writer_shim/filter/live_filter.hpp"

namespace arctrace::shim {
namespace {

struct Entry {
  uint64_t function;  // 0: free
  const char* name;
  uint32_t flags_at_start;
  uint32_t flags;  // by the live filter of `generation`
  uint32_t generation;
  uint32_t arg_specs;  // see arg_specs_of()
  uint32_t reading;    // the number of the reading that found it
  uint64_t patterns;   // matched once the function is found open, one bit each
};

// Open addressing; never more than half full. A larger table takes its place, and the old
// one stays for threads that are still reading it.
struct Table {
  uint64_t capacity;  // a power of 2
  uint64_t used;
  Entry entries[1];
};

uint64_t table_address;  // of the present Table; 0: there is none
bool any_is_chosen;      // an entry has flags or arguments from the start

constexpr uint32_t kNever = 0;
constexpr uint32_t kAlways = 1;
// Not 0 if calls are to be looked up: because of the options, or of a live filter.
// Relaxed: a thread that still has the old word begins to look up one call later.
const volatile uint32_t* is_asked = &kNever;

constexpr uint64_t kCapacityMin = 1024;

uint64_t first_index(uint64_t function) { return function * 0x9E3779B97F4A7C15 >> 20; }

// The entry of `function`, or the free one where it belongs.
Entry& find_entry(Table& table, uint64_t function) {
  for (uint64_t i = first_index(function);; ++i) {
    Entry& entry = table.entries[i & (table.capacity - 1)];
    const uint64_t found = IpcAtomics::load_acquire(entry.function);
    if (found == function || found == 0) return entry;
  }
}

Table* present_table() {
  return reinterpret_cast<Table*>(
      static_cast<uintptr_t>(IpcAtomics::load_acquire(table_address)));
}

void put(Table& table, const Entry& wanted) {
  Entry& entry = find_entry(table, wanted.function);
  if (entry.function == 0) ++table.used;
  entry.name = wanted.name;
  entry.flags_at_start = wanted.flags_at_start;
  entry.reading = wanted.reading;
  IpcAtomics::store_relaxed(entry.patterns, wanted.patterns);
  IpcAtomics::store_relaxed(entry.arg_specs, wanted.arg_specs);
  IpcAtomics::store_relaxed(entry.flags, wanted.flags_at_start);
  IpcAtomics::store_relaxed(entry.generation, uint32_t{0});
  IpcAtomics::store_release(entry.function, wanted.function);
  if (wanted.flags_at_start != 0 || wanted.arg_specs != 0) any_is_chosen = true;
}

// The table with space for so many more; null: no memory.
Table* table_with_space(uint64_t count) {
  Table* table = present_table();
  const uint64_t used = table == nullptr ? 0 : table->used;
  if (table != nullptr && used + count <= table->capacity / 2) return table;
  uint64_t capacity = table == nullptr ? kCapacityMin : table->capacity;
  while (used + count > capacity / 2) capacity *= 2;
  auto* larger = static_cast<Table*>(sys::map(sizeof(Table) + capacity * sizeof(Entry),
                                              PROT_READ | PROT_WRITE,
                                              MAP_PRIVATE | MAP_ANONYMOUS, -1));
  if (larger == nullptr) return nullptr;
  larger->capacity = capacity;
  for (uint64_t i = 0; table != nullptr && i < table->capacity; ++i) {
    const Entry& entry = table->entries[i];
    if (entry.function == 0) continue;
    put(*larger, entry);
  }
  IpcAtomics::store_release(table_address,
                            static_cast<uint64_t>(reinterpret_cast<uintptr_t>(larger)));
  return larger;
}

bool may_be_open;  // functions without hooks are noted, if they have flags
uint32_t reading;  // the number of the present reading, or of the last one

// Notes a function. An address that is in the table already is entered even without
// flags, because the function that another module had there is gone. The filters of a
// function's several names add up. `has_hook`: it is noted in any case, because the live
// filter may name it later. The live filter does not apply to functions without a hook,
// whose beginning nobody notices.
void keep_function(Entry wanted, bool has_hook) {
  Table* table = present_table();
  Entry* known = table == nullptr ? nullptr : &find_entry(*table, wanted.function);
  const bool is_known = known != nullptr && known->function != 0;
  if (is_known && known->reading == wanted.reading) {
    wanted.flags_at_start |= known->flags_at_start;
    wanted.patterns |= known->patterns;
    if (wanted.arg_specs == 0) wanted.arg_specs = known->arg_specs;
  }
  const bool is_needed = wanted.flags_at_start != 0 || wanted.arg_specs != 0;
  if (!is_needed && !is_known && !has_hook) return;
  if (!is_known) table = table_with_space(1);
  if (!has_hook) wanted.name = "";
  if (table != nullptr) put(*table, wanted);
}

// Applies the live filter again, which has changed.
__attribute__((noinline)) void filter_again(Entry& entry) {
  uint32_t flags = 0;
  uint32_t generation = 0;
  if (!apply_live_filter(entry.name, entry.flags_at_start, flags, generation)) return;
  IpcAtomics::store_relaxed(entry.flags, flags);
  IpcAtomics::store_relaxed(entry.generation, generation);
}

bool is_function(const ElfW(Sym) & symbol) {
  return ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF;
}

Entry entry_of(const ElfW(Sym) & symbol, const char* name, uintptr_t bias) {
  return {.function = bias + symbol.st_value,
          .name = name,
          .flags_at_start = 0,
          .flags = 0,
          .generation = 0,
          .arg_specs = 0,
          .reading = reading,
          .patterns = 0};
}

// Notes a function without a hook, which may be open.
void keep_hookless(const ElfW(Sym) & symbol, const char* name, const char* path,
                   uintptr_t bias) {
  const FilterMatch match = match_filter(name, path, symbol.st_size);
  Entry wanted = entry_of(symbol, name, bias);
  // The filter of its module is known without its name.
  wanted.flags_at_start = match.flags & ~uint32_t{ARCTRACE_SHIM_HIDDEN};
  wanted.patterns = match.patterns;
  keep_function(wanted, false);
}

// `have_hooks`: whether the module's functions do.
void read_symbols(const ElfSections& elf, const ModuleFile& file, uintptr_t bias,
                  bool have_hooks) {
  const int fd = file.descriptor();
  const FilePart& sections = elf.headers();
  const uint64_t size = elf.file_size();
  const ElfW(Shdr)* table = elf.symbols();
  if (table == nullptr || table->sh_link >= sections.count<ElfW(Shdr)>()) return;
  const ElfW(Shdr)& strings = sections.items<ElfW(Shdr)>()[table->sh_link];
  const FilePart symbols(fd, table->sh_offset, table->sh_size, size);
  struct stat status {};
  if (sys::stat_fd(fd, &status) != 0) return;
  const FilePart passing =
      have_hooks ? FilePart() : FilePart(fd, strings.sh_offset, strings.sh_size, size);
  const StringTable names =
      have_hooks ? retained_strings(fd, status, strings) : passing.strings();
  const bool are_chosen = filters_functions() || records_args();
  if (have_hooks) table_with_space(symbols.count<ElfW(Sym)>());
  for (uint64_t i = 0; i < symbols.count<ElfW(Sym)>(); ++i) {
    const ElfW(Sym)& symbol = symbols.items<ElfW(Sym)>()[i];
    const char* name = names.text(symbol.st_name);
    if (!is_function(symbol) || name == nullptr) continue;
    if (!have_hooks) {
      keep_hookless(symbol, name, file.path(), bias);
      continue;
    }
    const FileAddress at = {status.st_dev, status.st_ino, symbol.st_value};
    Entry wanted = entry_of(symbol, name, bias);
    if (are_chosen) {
      wanted.flags_at_start = filter_flags(name, file.path(), symbol.st_size);
      wanted.arg_specs = arg_specs_of(name, &at);
    }
    keep_function(wanted, true);
  }
}

// Reads the symbols in memory of a system's library without hooks: its file hardly has
// other symbols, and each system call on the file would stop the recorder's borrowed
// thread.
void read_loaded_symbols(const ModuleImage& image, const char* path) {
  const SymbolRange range = symbols_for_others(image);
  for (uint32_t i = range.begin; i < range.end; ++i) {
    const ElfW(Sym)& symbol = image.symbols[i];
    if (!is_function(symbol)) continue;
    keep_hookless(symbol, image.strings + symbol.st_name, path, image.bias);
  }
}

constexpr const char* kHooks[] = {"__cyg_profile_func_enter", "__fentry__", "mcount",
                                  "_mcount"};

// Modules that were read, or need not be.
struct Known {
  AddressRange range;
  uint32_t seen;         // the number of the last reading that found the module
  bool is_filtered_out;  // all its functions are
};
constexpr size_t kKnownMax = 4096;
constexpr size_t kFirstKnown = 16;
ARCTRACE_LARGE_TABLE constinit Known other_known[kKnownMax - kFirstKnown]{};
constinit SplitTable<other_known, kFirstKnown> known{};
size_t known_count;

// Whether the module was there at the last reading already. `entry`: the one where it is
// noted; null: none.
bool is_known(const AddressRange& range, Known*& entry) {
  entry = nullptr;
  for (size_t i = 0; i < known_count; ++i) {
    const bool is_same = known[i].range.low == range.low;
    if (is_same && known[i].seen + 1 >= reading) {
      known[i].seen = reading;
      return true;
    }
    if (is_same || known[i].seen + 1 < reading) entry = &known[i];
  }
  if (entry == nullptr && known_count < kKnownMax) entry = &known[known_count++];
  if (entry != nullptr) *entry = {range, reading, false};
  return false;
}

int read_module_functions(dl_phdr_info* info, size_t, void* is_first) {
  const bool is_program = *static_cast<bool*>(is_first);
  *static_cast<bool*>(is_first) = false;
  ModuleImage image;
  Known* noted = nullptr;
  if (!read_module(*info, image) || is_known(image.range, noted)) return 0;
  const bool calls = calls_compiled_in_hooks(image);
  const bool reads_all = may_be_open && filters_functions();
  if (!calls && (ModuleFile::is_of_system(*info) || ModuleFile::is_own(*info, image))) {
    if (!reads_all) return 0;
    if (noted != nullptr) {
      noted->is_filtered_out = is_module_filtered_out(info->dlpi_name);
    }
    read_loaded_symbols(image, info->dlpi_name);
    return 0;
  }
  const ModuleFile file(*info, is_program);
  if (noted != nullptr) noted->is_filtered_out = is_module_filtered_out(file.path());
  if (file.descriptor() < 0) return 0;
  const ElfSections sections(file.descriptor());
  const bool have_hooks = calls || sections.find(kPatchableSection) != nullptr ||
                          sections.find(kXraySection) != nullptr;
  if (have_hooks || reads_all) read_symbols(sections, file, image.bias, have_hooks);
  return 0;
}

}  // namespace

void know_functions_that_may_be_open() { may_be_open = true; }

void read_function_symbols() {
  if (filters_functions() || records_args()) find_demangler();
  ++reading;
  bool is_first = true;
  dl_iterate_phdr(read_module_functions, &is_first);
  IpcAtomics::store_relaxed(is_asked,
                            any_is_chosen ? &kAlways : live_filter_generation_word);
}

void forget_function_symbols() {
  known_count = 0;
  any_is_chosen = false;
  Table* table = present_table();
  for (uint64_t i = 0; table != nullptr && i < table->capacity; ++i) {
    Entry& entry = table->entries[i];
    entry.flags_at_start = 0;
    IpcAtomics::store_relaxed(entry.patterns, uint64_t{0});
    IpcAtomics::store_relaxed(entry.arg_specs, uint32_t{0});
    IpcAtomics::store_relaxed(entry.flags, uint32_t{0});
    IpcAtomics::store_relaxed(entry.generation, uint32_t{0});
  }
}

bool calls_compiled_in_hooks(const ModuleImage& image) {
  for (const char* hook : kHooks) {
    if (image.imports(hook)) return true;
  }
  return false;
}

bool any_function_is_filtered() { return *IpcAtomics::load_relaxed(is_asked) != 0; }

FunctionFilter function_filter(uintptr_t function) {
  if (!any_function_is_filtered()) return {};
  Table* table = present_table();
  if (table == nullptr) return {};
  Entry& entry = find_entry(*table, function);
  if (entry.function == 0) return {};
  if (live_filter_generation() != IpcAtomics::load_relaxed(entry.generation)) {
    filter_again(entry);
  }
  return {IpcAtomics::load_relaxed(entry.flags),
          IpcAtomics::load_relaxed(entry.arg_specs)};
}

uint32_t open_function_flags(uintptr_t function, uint64_t size) {
  if (!filters_functions()) return 0;
  uint32_t flags = filter_flags_by_size(size);
  for (size_t i = 0; i < known_count; ++i) {
    if (known[i].is_filtered_out && known[i].range.contains(function)) {
      flags |= ARCTRACE_SHIM_HIDDEN;
    }
  }
  Table* table = present_table();
  if (table == nullptr) return flags;
  Entry& entry = find_entry(*table, function);
  if (entry.function == 0) return flags;
  const uint64_t patterns = IpcAtomics::load_relaxed(entry.patterns);
  if (patterns != 0) arctrace_shim_patterns_matched(patterns);
  return flags | function_filter(function).flags;
}

KnownFunction known_function(uintptr_t function) {
  Table* table = present_table();
  if (table == nullptr) return {function, "", 0, 0};
  const Entry& entry = find_entry(*table, function);
  if (entry.function == 0) return {function, "", 0, 0};
  return {function, entry.name, entry.flags_at_start, entry.arg_specs};
}

}  // namespace arctrace::shim
