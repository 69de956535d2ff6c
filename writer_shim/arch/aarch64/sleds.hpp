// See writer_shim/arch/sleds.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "writer_shim/elf/module_slots.hpp"

namespace arctrace::shim {

inline constexpr uintptr_t kJumpReach = uintptr_t{1} << 27;  // of a branch: 128 MiB

struct GatedJump {
  uint32_t code[6];
  uint64_t stub;
};

Sled find_sled(uintptr_t at, const AddressRange& code);
Sled find_xray_sled(uintptr_t at, uintptr_t function, const AddressRange& code);

// Here mcount is called in the middle of functions only.
template <class Visit>
void for_each_entry_call(const ModuleImage& /*image*/, const Visit& /*visit*/) {}

bool make_jump(GatedJump& jump, uintptr_t gate, const Sled& sled);
uintptr_t goes_on_at(const GatedJump& jump, const Sled& sled);
bool lead_to_jump(const Sled& sled, const GatedJump& jump);
void finish_code(uintptr_t address, size_t size);

}  // namespace arctrace::shim
