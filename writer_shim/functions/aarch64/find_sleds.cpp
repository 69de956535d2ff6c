// Finds sleds on aarch64, which are one NOP, or XRay's branch over seven.
#include "writer_shim/functions/find_sleds.hpp"

#include "writer_shim/arch/aarch64/instructions.hpp"
#include "writer_shim/functions/function_hooks.hpp"
#include "writer_shim/unwind/frame_rule.hpp"

namespace arctrace::shim {

// Functions that call mcount at their entry (-pg) are not recorded on this machine.
void forget_entry_hooks() {}

namespace {

constexpr uintptr_t kWord = sizeof(uint32_t);

}  // namespace

Sled find_sled(uintptr_t at, const AddressRange& code, FunctionSymbols& symbols) {
  const auto holds = [&code](uintptr_t address, uint32_t word) {
    return code.contains(address) && code.contains(address + kWord) &&
           *reinterpret_cast<const uint32_t*>(address) == word;
  };
  const auto sled = [](uintptr_t function, uintptr_t begin) {
    return Sled{function, reinterpret_cast<unsigned char*>(begin), begin + kWord};
  };
  if (!holds(at, kNop)) return {};
  for (uintptr_t begin = at; holds(begin, kNop) || holds(begin, kBranchTarget);
       begin += kWord) {
    uintptr_t function = find_frame_rule(begin).function;
    if (function == 0) {
      const bool has_pad = holds(begin - kWord, kBranchTarget);
      const uintptr_t first = has_pad ? begin - kWord : begin;
      if (symbols.begins_at(first)) function = first;
    }
    const bool is_here = function == begin || function + kWord == begin;
    if (is_here && holds(begin, kNop)) return sled(function, begin);
  }
  // gcc 12's unwind tables begin after the NOP area. Without symbols, NOPs before the
  // function are then taken for its NOP area, and are never executed.
  return sled(holds(at - kWord, kBranchTarget) ? at - kWord : at, at);
}

Sled find_xray_sled(uintptr_t at, uintptr_t function, const AddressRange& code) {
  constexpr size_t kWords = 8;  // a branch over seven NOPs
  constexpr size_t kSize = kWords * sizeof(uint32_t);
  if (at % sizeof(uint32_t) != 0 || !code.contains(at) || code.high - at < kSize) {
    return {};
  }
  const auto* words = reinterpret_cast<const uint32_t*>(at);
  // A sled elsewhere comes after a hook of another kind.
  if (at != function && (at - function != sizeof(uint32_t) || !code.contains(function) ||
                         words[-1] != kBranchTarget)) {
    return {};
  }
  if (words[0] != (kBranch | kWords)) return {};
  for (size_t i = 1; i < kWords; ++i) {
    if (words[i] != kNop) return {};
  }
  return {function, reinterpret_cast<unsigned char*>(at), at + kSize};
}

// Here mcount is called in the middle of functions only.
uintptr_t find_entry_call_slot(const ModuleImage& /*image*/) { return 0; }

Sled next_entry_call(const ModuleImage& /*image*/, uintptr_t /*slot*/,
                     uintptr_t /*from*/) {
  return {};
}

// Exits are seen by calling functions through, so XRay's exits are not needed.
unsigned char* find_xray_exit(uintptr_t /*at*/, const AddressRange& /*code*/) {
  return nullptr;
}
ReturnCalls::ReturnCalls(const ModuleImage& image) : image_(image), slot_(0) {}
bool ReturnCalls::are_in(const Sled& /*sled*/) { return false; }

}  // namespace arctrace::shim
