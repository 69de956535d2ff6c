// Searches modules by the loader's function, or in the shim's table.
#include "writer_shim/elf/loaded_objects.hpp"

#include <dlfcn.h>
#include <link.h>

#include "src/base/large_table.hpp"
#include "src/base/shared_atomics.hpp"
#include "writer_shim/elf/symbol_search.hpp"

namespace arctrace::shim {
namespace {

// The address of the loader's own search. 0: not looked up yet; kNone: the loader has
// none.
constexpr uint64_t kNone = 1;
uint64_t loader_search;

bool loader_searches() {
  uint64_t search = IpcAtomics::load_relaxed(loader_search);
  if (__builtin_expect(search == 0, 0)) {
    search = find_function("_dl_find_object", SearchFrom::kProgram);
    if (search == 0) search = kNone;
    IpcAtomics::store_relaxed(loader_search, search);
  }
  return search != kNone;
}

// The shim's own table. An entry is in use while `low` is not 0.
struct Entry {
  uint64_t low;
  uint64_t high;
  uint64_t eh_frame_hdr;
  uint64_t bias;
  uint64_t dynamic;
};
ARCTRACE_LARGE_TABLE constinit Entry entries[kModulesMax]{};
uint32_t entries_used;

// The code at `address` runs, so its module does not change meanwhile. Other entries may
// be reused for another module between two loads.
LoadedObject search_entries(uintptr_t address) {
  const uint32_t used = IpcAtomics::load_acquire(entries_used);
  for (uint32_t i = 0; i < used; ++i) {
    const uint64_t low = IpcAtomics::load_acquire(entries[i].low);
    if (low == 0 || address < low) continue;
    const uint64_t high = IpcAtomics::load_acquire(entries[i].high);
    const uint64_t header = IpcAtomics::load_acquire(entries[i].eh_frame_hdr);
    const uint64_t bias = IpcAtomics::load_acquire(entries[i].bias);
    const uint64_t dynamic = IpcAtomics::load_acquire(entries[i].dynamic);
    if (address >= high || IpcAtomics::load_relaxed(entries[i].low) != low) continue;
    return {{static_cast<uintptr_t>(low), static_cast<uintptr_t>(high)},
            reinterpret_cast<const std::byte*>(static_cast<uintptr_t>(header)),
            static_cast<uintptr_t>(bias),
            reinterpret_cast<const ElfW(Dyn)*>(static_cast<uintptr_t>(dynamic))};
  }
  return {};
}

}  // namespace

LoadedObject find_loaded_object(uintptr_t address) {
  if (!loader_searches()) return search_entries(address);
  const auto search = reinterpret_cast<decltype(&_dl_find_object)>(
      static_cast<uintptr_t>(IpcAtomics::load_relaxed(loader_search)));
  dl_find_object object{};
  if (search(reinterpret_cast<void*>(address), &object) != 0) return {};
  return {{reinterpret_cast<uintptr_t>(object.dlfo_map_start),
           reinterpret_cast<uintptr_t>(object.dlfo_map_end)},
          static_cast<const std::byte*>(object.dlfo_eh_frame),
          object.dlfo_link_map->l_addr,
          object.dlfo_link_map->l_ld};
}

bool read_loaded_module(uintptr_t address, ModuleImage& image) {
  const LoadedObject object = find_loaded_object(address);
  image = {};
  image.bias = object.bias;
  image.range = object.range;
  return object.dynamic != nullptr && read_dynamic_section(object.dynamic, image);
}

void set_loaded_object(uint32_t index, const dl_phdr_info& info, AddressRange range) {
  if (loader_searches() || index >= kModulesMax) return;
  Entry& entry = entries[index];
  // Release, as the stores below: after clear_loaded_object() a search that sees them
  // also sees that the entry was empty, and does not combine an old `low` with a new
  // module's other values.
  IpcAtomics::store_release(entry.high, uint64_t{range.high});
  uint64_t header = 0;
  uint64_t dynamic = 0;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    if (segment.p_type == PT_GNU_EH_FRAME) header = info.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_DYNAMIC) dynamic = info.dlpi_addr + segment.p_vaddr;
  }
  IpcAtomics::store_release(entry.eh_frame_hdr, header);
  IpcAtomics::store_release(entry.bias, uint64_t{info.dlpi_addr});
  IpcAtomics::store_release(entry.dynamic, dynamic);
  IpcAtomics::store_release(entry.low, uint64_t{range.low});
  if (index >= entries_used) IpcAtomics::store_release(entries_used, index + 1);
}

void clear_loaded_object(uint32_t index) {
  if (loader_searches() || index >= kModulesMax) return;
  IpcAtomics::store_release(entries[index].low, uint64_t{0});
}

}  // namespace arctrace::shim
