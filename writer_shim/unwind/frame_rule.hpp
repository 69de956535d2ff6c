// Says where a machine frame is and how its caller's is found: the rules for its
// canonical frame address (CFA: what the caller's stack pointer was at the call), and for
// the registers that lead on to the caller's frame.
#pragma once

#include <cstdint>

namespace arctrace::shim {

struct FrameRule {
  enum class Base : uint8_t {
    kUnknown,       // no unwind tables, or a rule of another kind
    kStackPointer,  // CFA = stack pointer + offset
    kFramePointer,  // CFA = frame pointer + offset
    kSaved          // CFA = the word at frame pointer + offset (a realigned stack)
  };
  // The caller's frame pointer.
  enum class FramePointer : uint8_t {
    kSame,      // is still in the register
    kAtCfa,     // is the word at CFA + frame_pointer_offset
    kAtItself,  // is the word at frame pointer + frame_pointer_offset
    kUnknown
  };
  Base base = Base::kUnknown;
  FramePointer frame_pointer = FramePointer::kSame;
  int32_t offset = 0;
  int32_t frame_pointer_offset = 0;
  int32_t return_address_offset = 0;  // of its word, from the CFA; 0: not in memory
  // The code that one entry of the tables describes.
  uintptr_t function = 0;
  uintptr_t function_end = 0;
};

}  // namespace arctrace::shim
