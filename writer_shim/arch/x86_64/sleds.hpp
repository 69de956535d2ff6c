// See writer_shim/arch/sleds.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "writer_shim/arch/x86_64/fentry_calls.hpp"
#include "writer_shim/elf/module_slots.hpp"

namespace arctrace::shim {

inline constexpr uintptr_t kJumpReach = uintptr_t{1} << 29;  // of 2 GiB, with the module

struct GatedJump {
  unsigned char code[24];
  uint64_t stub;
};

Sled find_sled(uintptr_t at, const AddressRange& code);
Sled find_xray_sled(uintptr_t at, uintptr_t function, const AddressRange& code);

template <class Visit>
void for_each_entry_call(const ModuleImage& image, const Visit& visit) {
  const uintptr_t slot = find_fentry_slot(image);
  if (slot == 0) return;
  FentryCall call = next_fentry_call(image, slot, image.code.low);
  while (call.function != 0) {
    const uintptr_t end = call.end;
    visit(Sled{call.function, reinterpret_cast<unsigned char*>(call.begin), end});
    call = next_fentry_call(image, slot, end);
  }
}

bool make_jump(GatedJump& jump, uintptr_t gate, const Sled& sled);
inline uintptr_t goes_on_at(const GatedJump& /*jump*/, const Sled& sled) {
  return sled.end;
}
bool lead_to_jump(const Sled& sled, const GatedJump& jump);
inline void finish_code(uintptr_t /*address*/, size_t /*size*/) {}

}  // namespace arctrace::shim
