// The table of modules that the shim has where the loader has no search of its own.
#include "writer_shim/elf/loaded_objects.hpp"

#include <doctest/doctest.h>
#include <link.h>

#include <atomic>
#include <thread>

#include "writer_shim/elf/symbol_search.hpp"

namespace arctrace::shim {

// Acts as in a program whose glibc is earlier than 2.35: no module has _dl_find_object.
uintptr_t find_function(const char* /*name*/, SearchFrom /*from*/) { return 0; }

namespace {

// Module number `index` is at `range`, with its unwind tables at `header` (0: none).
void set_module(uint32_t index, AddressRange range, uintptr_t header) {
  const ElfW(Addr) bias = 16;
  ElfW(Phdr) segments[2]{};
  segments[0].p_type = PT_LOAD;
  segments[0].p_vaddr = 7;
  segments[1].p_type = header != 0 ? PT_GNU_EH_FRAME : PT_NOTE;
  segments[1].p_vaddr = header - bias;
  dl_phdr_info info{};
  info.dlpi_addr = bias;
  info.dlpi_phdr = segments;
  info.dlpi_phnum = 2;
  set_loaded_object(index, info, range);
}

uintptr_t low_at(uintptr_t address) { return find_loaded_object(address).range.low; }
uintptr_t header_at(uintptr_t address) {
  return reinterpret_cast<uintptr_t>(find_loaded_object(address).eh_frame_hdr);
}

TEST_CASE("each address is found in the module that has it") {
  CHECK(low_at(1000) == 0);
  set_module(0, {1000, 2000}, 1100);
  set_module(1, {5000, 6000}, 5100);
  set_module(2, {2000, 3000}, 0);
  CHECK(low_at(999) == 0);
  CHECK(low_at(1000) == 1000);
  CHECK(low_at(1999) == 1000);
  CHECK(find_loaded_object(1999).range.high == 2000);
  CHECK(low_at(2000) == 2000);
  CHECK(low_at(2999) == 2000);
  CHECK(low_at(3000) == 0);
  CHECK(low_at(5999) == 5000);
  CHECK(low_at(6000) == 0);
  CHECK(low_at(0) == 0);
  CHECK(header_at(1500) == 1100);
  CHECK(header_at(5500) == 5100);
  CHECK(header_at(2500) == 0);
}

TEST_CASE("an entry is cleared, and another module takes it") {
  set_module(0, {1000, 2000}, 1100);
  set_module(1, {5000, 6000}, 5100);
  clear_loaded_object(0);
  CHECK(low_at(1500) == 0);
  CHECK(low_at(5500) == 5000);
  set_module(0, {1200, 1400}, 0);
  CHECK(low_at(1100) == 0);
  CHECK(low_at(1300) == 1200);
  CHECK(header_at(1300) == 0);
}

// For each module of this process, reading by an address gives the same as the loader's
// list.
int compare_with_table(dl_phdr_info* info, size_t, void* compared) {
  ModuleImage image;
  if (!read_module(*info, image)) return 0;
  set_loaded_object(0, *info, image.range);
  ModuleImage found;
  CHECK(read_loaded_module(image.range.high - 1, found));
  CHECK(found.bias == image.bias);
  CHECK(found.range.low == image.range.low);
  CHECK(found.jump_slots == image.jump_slots);
  CHECK(found.jump_slot_count == image.jump_slot_count);
  CHECK(found.relocations == image.relocations);
  CHECK(found.relocation_count == image.relocation_count);
  CHECK(found.symbols == image.symbols);
  CHECK(found.strings == image.strings);
  CHECK(found.gnu_hash == image.gnu_hash);
  ++*static_cast<int*>(compared);
  return 0;
}

TEST_CASE("the dynamic section of a module is found by an address") {
  ModuleImage image;
  set_module(0, {1000, 2000}, 0);
  set_module(1, {5000, 6000}, 0);
  CHECK_FALSE(read_loaded_module(1500, image));  // that module has no tables
  CHECK_FALSE(read_loaded_module(3000, image));
  clear_loaded_object(1);
  int compared = 0;
  dl_iterate_phdr(compare_with_table, &compared);
  CHECK(compared >= 3);
}

TEST_CASE("a search sees one module, whatever takes the entries meanwhile") {
  constexpr uintptr_t kMiddle = 1u << 28;
  constexpr uintptr_t kChanges = 1u << 22;
  set_module(1, {1000, 2000}, 1100);
  std::atomic<bool> is_over{false};
  std::thread changer([&] {
    // Each module has the middle, and a beginning that no other one has.
    for (uintptr_t i = 1; i < kChanges; ++i) {
      set_module(0, {kMiddle - i, kMiddle + i}, i);
      clear_loaded_object(0);
    }
    is_over = true;
  });
  size_t wrong = 0;
  while (!is_over) {
    const LoadedObject object = find_loaded_object(kMiddle);
    const uintptr_t size = kMiddle - object.range.low;
    const bool is_one = object.range.high == 0 ||
                        (object.range.high == kMiddle + size &&
                         reinterpret_cast<uintptr_t>(object.eh_frame_hdr) == size);
    if (!is_one) ++wrong;
    if (low_at(1500) != 1000) ++wrong;
  }
  changer.join();
  CHECK(wrong == 0);
}

// This test is after the others, because a search checks all entries from then on.
TEST_CASE("the last entry, and one that there is no room for") {
  set_module(kModulesMax - 1, {8000, 9000}, 8100);
  CHECK(low_at(8500) == 8000);
  set_module(kModulesMax, {9000, 9500}, 9100);
  clear_loaded_object(kModulesMax);
  CHECK(low_at(9100) == 0);
  CHECK(low_at(8500) == 8000);
  clear_loaded_object(kModulesMax - 1);
}

}  // namespace
}  // namespace arctrace::shim
