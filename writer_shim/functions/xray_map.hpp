// Clang's map of a module's sleds (-fxray-instrument).
#pragma once

#include <cstddef>
#include <cstdint>

#include "writer_shim/arch/sleds.hpp"
#include "writer_shim/elf/module_slots.hpp"

namespace arctrace::shim {

class XrayMap {
 public:
  XrayMap(const ModuleImage& image, const AddressRange& map)
      : image_(image), map_(map), looked_at_(map.low) {}

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

  // How the exits of a function can be seen: reported, if it has sleds there, all as
  // clang made them. The sleds of a function follow one another in the map. Takes long if
  // asked about one that comes before the last one.
  Exits exits_of(const Sled& sled) {
    if (function_at(looked_at_) != sled.function) looked_at_ = map_.low;
    while (has_entry(looked_at_) && function_at(looked_at_) != sled.function) {
      looked_at_ += sizeof(Entry);
    }
    Exits exits = Exits::kThrough;
    for (uintptr_t at = looked_at_; function_at(at) == sled.function;
         at += sizeof(Entry)) {
      if (!entry_at(at).is_end()) continue;
      if (exit_at(at) == nullptr) return Exits::kThrough;
      exits = Exits::kReported;
    }
    return exits;
  }

  // Calls visit(sled) for each exit that can be patched, of functions that report theirs.
  template <class Visit>
  void for_each_reported_exit(const Visit& visit) const {
    for (uintptr_t at = map_.low; has_entry(at); at += sizeof(Entry)) {
      if (!entry_at(at).is_end() || !reports_exit(function_at(at))) continue;
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
  // 0: the map ends there.
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
  uintptr_t looked_at_;
};

}  // namespace arctrace::shim
