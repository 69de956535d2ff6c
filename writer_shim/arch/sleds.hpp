// What a machine knows of functions that begin with room for a jump, and of the jumps.
#pragma once

#include <cstdint>

namespace arctrace::shim {

// A function with room, or with a call of a hook in its place.
struct Sled {
  uintptr_t function;  // 0: it has too little
  unsigned char* begin;
  uintptr_t end;  // where the function goes on
};

}  // namespace arctrace::shim

// There:
//   kJumpReach: how far from its module's code a gated jump may be.
//   GatedJump: where the room of a function jumps to. It asks the gate itself, so that a
//     function costs next to nothing more while functions are switched off; then it goes
//     on to `stub`.
//   find_sled(at, code): of the function whose first NOP the compiler noted at `at`. Some
//     may stand before it.
//   find_xray_sled(at, function, code): the sled that clang noted at `at`, for the
//     entry of `function`, if its bytes are still as clang made them.
//   for_each_entry_call(image, visit): calls visit(sled) for each call of a hook that a
//     jump may take the place of.
//   make_jump(jump, gate, sled): for a function, and the place of the gate's address.
//     False: it is too far away.
//   goes_on_at(jump, sled): where the stub calls the function.
//   lead_to_jump(sled, jump): has the function begin with it. False: it is too far away.
//   finish_code(address, size): what was written there is code from now on.
#if defined(__x86_64__)
#include "writer_shim/arch/x86_64/sleds.hpp"
#elif defined(__aarch64__)
#include "writer_shim/arch/aarch64/sleds.hpp"
#endif
