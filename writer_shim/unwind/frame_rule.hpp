// The rules by which a machine frame and its caller's are found: for the frame's
// canonical frame address (CFA: the caller's stack pointer before the call), and for the
// registers that lead to the caller's frame.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arctrace::shim {

struct FrameRule {
  enum class Base : uint8_t {
    kUnknown,       // no unwind tables, or a rule of another kind
    kStackPointer,  // CFA = stack pointer + offset
    kFramePointer,  // CFA = frame pointer + offset
    kSaved          // CFA = the word at frame pointer + offset (a realigned stack)
  };
  // How the caller's frame pointer is found.
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
  // The beginning of the code that one entry of the tables describes.
  uintptr_t function = 0;
  uintptr_t function_end = 0;
};

// The rule that applies at `pc`, an address in a loaded module, by that module's unwind
// tables: the binary search table of .eh_frame_hdr, and from there the entries of
// .eh_frame. Lock-free, some hundred ns; reads only what the loader has mapped.
FrameRule find_frame_rule(uintptr_t pc);

// As find_frame_rule(), from one module's .eh_frame_hdr, which is mapped within [low,
// high) like the .eh_frame that it points to. Reads nothing outside of that range.
FrameRule find_frame_rule_in(const std::byte* eh_frame_hdr, uintptr_t low, uintptr_t high,
                             uintptr_t pc);

}  // namespace arctrace::shim
