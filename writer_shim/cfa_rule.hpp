// Where a machine frame is: the rule for its canonical frame address (CFA: what the
// caller's stack pointer was at the call), from the unwind tables of the module.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arctrace::shim {

struct CfaRule {
  enum class Base : uint8_t {
    kUnknown,       // no unwind tables, or a rule of another kind
    kStackPointer,  // CFA = stack pointer + offset
    kFramePointer,  // CFA = frame pointer + offset
    kSaved          // CFA = what stands at frame pointer + offset (a realigned stack)
  };
  Base base = Base::kUnknown;
  int32_t offset = 0;
  uintptr_t function = 0;  // where the code that the tables describe together begins
};

// The rule that holds at `pc`, an address in a loaded module. Lock-free; reads only what
// the loader has mapped.
CfaRule find_cfa_rule(uintptr_t pc);

// The same from one module's .eh_frame_hdr, which lies in memory as it is mapped, in
// [low, high) like the .eh_frame that it points to.
CfaRule find_cfa_rule_in(const std::byte* eh_frame_hdr, uintptr_t low, uintptr_t high,
                         uintptr_t pc);

}  // namespace arctrace::shim
