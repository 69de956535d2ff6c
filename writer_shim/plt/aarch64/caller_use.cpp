// Checks whether a function uses its caller, on aarch64. A function's return address
// comes in a register, where reading it is an ordinary move; so only functions that save
// their caller's registers outside of the stack are found.
#include "writer_shim/arch/aarch64/instructions.hpp"
#include "writer_shim/plt/caller_readers.hpp"

namespace arctrace::shim {
namespace {

constexpr uint32_t kStackPointer = 31;
constexpr uint32_t kFirstSaved = 19;
constexpr uint32_t kLastSaved = 30;
constexpr int kInstructionsMax = 32;
constexpr int kStoredRegisters = 3;

bool is_saved(uint32_t number) { return number >= kFirstSaved && number <= kLastSaved; }

// How many registers of its caller the instruction stores outside of the stack.
int stored_registers(uint32_t word) {
  const bool is_pair = (word & 0xfe400000) == 0xa8000000;      // stp x, x, [base]
  const bool is_single = (word & 0xffc00000) == 0xf9000000 ||  // str x, [base, #n]
                         (word & 0xffe00000) == 0xf8000000;    // the same, unscaled
  if ((!is_pair && !is_single) || register_5(word) == kStackPointer) return 0;
  return (is_saved(register_0(word)) ? 1 : 0) +
         (is_pair && is_saved(register_10(word)) ? 1 : 0);
}

bool is_end(uint32_t word) {
  return word == kReturn || (word & ~kBranchMask) == kBranch ||
         (word & 0xfffffc1f) == 0xd61f0000;  // br x
}

}  // namespace

bool uses_its_caller(uintptr_t function) {
  const auto* at = reinterpret_cast<const uint32_t*>(function);
  int stored = 0;
  for (int i = 0; i < kInstructionsMax; ++i, ++at) {
    // A register that was saved on the stack may have another value.
    const bool is_push =
        ((*at & 0xfe400000) == 0xa8000000 || (*at & 0xffc00000) == 0xf9000000) &&
        register_5(*at) == kStackPointer;
    if (is_push || is_end(*at)) break;
    stored += stored_registers(*at);
  }
  return stored >= kStoredRegisters;
}

bool calls_compiled_in_hook(uintptr_t /*function*/) { return false; }

}  // namespace arctrace::shim
