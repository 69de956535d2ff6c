// Finds the sleds of functions (arch/sled_jumps.hpp), and calls of hooks that a jump may
// replace. Each machine knows its instructions (find_sleds.cpp in
// x86_64/ and aarch64/).
#pragma once

#include <cstddef>
#include <cstdint>

#include "writer_shim/arch/sled_jumps.hpp"
#include "writer_shim/elf/elf_sections.hpp"
#include "writer_shim/elf/module_slots.hpp"

namespace arctrace::shim {

// Whether the function whose call of __fentry__ returns to `hook_site` has pushed its
// static chain before the call, so that its return address is one word further up.
bool keeps_static_chain(uintptr_t hook_site);

// The sled of the function whose first NOP the compiler noted at `at`. Some NOPs may be
// before the function; its module's unwind tables, or else its symbols, show which.
Sled find_sled(uintptr_t at, const AddressRange& code, FunctionSymbols& symbols);

// The sled that clang noted at `at` for the entry of `function`, if its bytes are still
// as clang made them.
Sled find_xray_sled(uintptr_t at, uintptr_t function, const AddressRange& code);

// The sled that clang noted at `at` for an exit of a function, if its bytes are still as
// clang made them; null: they aren't, or such sleds are skipped on this machine.
unsigned char* find_xray_exit(uintptr_t at, const AddressRange& code);

// The slot through which the module's functions call __fentry__ at their entry; 0: none
// do.
uintptr_t find_entry_call_slot(const ModuleImage& image);

// Finds the functions of a module that call __return__ before they return, which they do
// at each of their returns.
class ReturnCalls {
 public:
  explicit ReturnCalls(const ModuleImage& image);
  // Whether the function of this sled does so. Takes long for a function that comes
  // before that of the last call.
  bool are_in(const Sled& sled);

 private:
  const ModuleImage& image_;
  uintptr_t slot_;               // 0: none do
  uintptr_t searched_from_ = 0;  // no call is between this and `next_`
  uintptr_t next_ = 0;
};

// The first such call at `from` or after it, as a sled.
Sled next_entry_call(const ModuleImage& image, uintptr_t slot, uintptr_t from);

// Clang's map of a module's sleds (-fxray-instrument).
class XrayMap {
 public:
  XrayMap(const ModuleImage& image, const AddressRange& map)
      : image_(image), map_(map), last_entry_(map.low) {}

  // Calls visit(sled) for the entry of each function that can be patched.
  template <class Visit>
  void for_each_entry(const Visit& visit) const {
    for (uintptr_t at = map_.low; has_entry(at); at += sizeof(Entry)) {
      const Entry entry = entry_at(at);
      if (entry.version != kVersion || !entry.is_begin()) continue;
      const Sled sled = find_xray_sled(at + entry.sled, function_at(at), image_.code);
      if (sled.function != 0) visit(sled);
    }
  }

  // How the exits of a function can be seen: by its own hook, if it has sleds there, all
  // as clang made them. The sleds of a function follow one another in the map. Takes long
  // for a function that comes before that of the last call.
  Exits exits_of(const Sled& sled) {
    if (function_at(last_entry_) != sled.function) last_entry_ = map_.low;
    while (has_entry(last_entry_) && function_at(last_entry_) != sled.function) {
      last_entry_ += sizeof(Entry);
    }
    Exits exits = Exits::kThrough;
    for (uintptr_t at = last_entry_; function_at(at) == sled.function;
         at += sizeof(Entry)) {
      if (!entry_at(at).is_end()) continue;
      if (exit_at(at) == nullptr) return Exits::kThrough;
      exits = Exits::kExitHooked;
    }
    return exits;
  }

  // Calls visit(sled) for each exit that can be patched, in exit-hooked functions.
  template <class Visit>
  void for_each_hooked_exit(const Visit& visit) const {
    for (uintptr_t at = map_.low; has_entry(at); at += sizeof(Entry)) {
      if (!entry_at(at).is_end() || !is_exit_hooked(function_at(at))) continue;
      if (unsigned char* const exit = exit_at(at); exit != nullptr) visit(exit);
    }
  }

 private:
  static constexpr uint8_t kVersion =
      2;  // since LLVM 12; before, addresses were absolute

  struct Entry {
    uintptr_t sled;      // from here
    uintptr_t function;  // from here
    uint8_t kind;
    uint8_t always;
    uint8_t version;
    uint8_t filler[13];

    bool is_begin() const { return kind == 0 || kind == 3; }  // 3: with arguments
    bool is_end() const { return kind == 1 || kind == 2; }    // 2: a jump elsewhere
  };
  static_assert(sizeof(Entry) == 32);

  bool has_entry(uintptr_t at) const { return map_.high - at >= sizeof(Entry); }
  static Entry entry_at(uintptr_t at) {
    Entry entry;
    __builtin_memcpy(&entry, reinterpret_cast<const void*>(at), sizeof entry);
    return entry;
  }
  // The function of the entry at `at`; 0: the map ends there.
  uintptr_t function_at(uintptr_t at) const {
    return has_entry(at) ? at + offsetof(Entry, function) + entry_at(at).function : 0;
  }
  unsigned char* exit_at(uintptr_t at) const {
    const Entry entry = entry_at(at);
    return entry.version == kVersion ? find_xray_exit(at + entry.sled, image_.code)
                                     : nullptr;
  }

  const ModuleImage& image_;
  const AddressRange map_;
  uintptr_t last_entry_;
};

}  // namespace arctrace::shim
