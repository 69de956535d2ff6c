// Where a machine frame is, from the unwind tables of its module: the rules for its
// canonical frame address (CFA: what the caller's stack pointer was at the call), and for
// the registers that lead on to the caller's frame.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arctrace::shim {

struct FrameRule {
  enum class Base : uint8_t {
    kUnknown,       // no unwind tables, or a rule of another kind
    kStackPointer,  // CFA = stack pointer + offset
    kFramePointer,  // CFA = frame pointer + offset
    kSaved          // CFA = what stands at frame pointer + offset (a realigned stack)
  };
  // The caller's frame pointer.
  enum class FramePointer : uint8_t {
    kSame,      // is still in the register
    kAtCfa,     // stands at CFA + frame_pointer_offset
    kAtItself,  // stands at frame pointer + frame_pointer_offset
    kUnknown
  };
  Base base = Base::kUnknown;
  FramePointer frame_pointer = FramePointer::kSame;
  int32_t offset = 0;
  int32_t frame_pointer_offset = 0;
  // Of the place where the return address stands, from the CFA; 0: not in memory.
  int32_t return_address_offset = 0;
  uintptr_t function = 0;  // where the code that the tables describe together begins
};

// The rule that holds at `pc`, an address in a loaded module. Lock-free; reads only what
// the loader has mapped.
FrameRule find_frame_rule(uintptr_t pc);

// The same from one module's .eh_frame_hdr, which lies in memory as it is mapped, in
// [low, high) like the .eh_frame that it points to.
FrameRule find_frame_rule_in(const std::byte* eh_frame_hdr, uintptr_t low, uintptr_t high,
                             uintptr_t pc);

}  // namespace arctrace::shim
