// Stacks that may have too little room for a slow path.
//
// Stacks in parts that are added when needed (-fsplit-stack): a function asks for a part
// itself, so that what is called before it could, or by its libraries, finds little room:
// some 3 KB, and next to none in a handler, because the kernel has put the processor's
// state there.
#pragma once

#include <cstdint>

namespace arctrace {

// So many bytes are enough for each slow path.
constexpr uintptr_t kSlowPathRoom = 8192;

// Whether the part of the stack that the thread is on may be too small for a slow path.
inline bool stack_is_short() {
#if defined(__x86_64__)
  // Below it is what a function may use that does not ask. 0: the stack has no parts.
  uintptr_t asks_from;
  asm("movq %%fs:0x70, %0" : "=r"(asks_from));
  if (__builtin_expect(asks_from == 0, 1)) return false;
  return static_cast<intptr_t>(reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) -
                               asks_from) < static_cast<intptr_t>(kSlowPathRoom);
#else
  return false;
#endif
}

}  // namespace arctrace
