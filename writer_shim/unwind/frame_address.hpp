// Routines that an unwinder calls for a frame (personality routines) may find data of
// that frame by _Unwind_GetCFA(), which returns the canonical address of the frame next
// further in: LuaJIT's do, whose interpreter has a fixed frame. Where that is one of
// ours, its address differs by some bytes from the stack pointer of the frame in question
// (writer_shim/arch/x86_64/call_stubs.S), which is what the routine expects.
#pragma once

#include <cstdint>

namespace arctrace::shim {

// The address of a function to call instead of libgcc's _Unwind_GetCFA, which is at
// `target`: it returns the stack pointer. All callers are taken to use the same libgcc.
uintptr_t own_frame_address(uintptr_t target);

}  // namespace arctrace::shim
