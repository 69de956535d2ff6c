#include "writer_shim/frame_location.hpp"

#include "src/shared_atomics.hpp"
#include "src/shim_interface.h"
#include "writer_shim/cfa_rule.hpp"
#include "writer_shim/loader_watch.hpp"

namespace arctrace::shim {
namespace {

// Rules by the return address of the hook's call, in a table that only grows.
//
// rule   63           40 39                    8 7      0
//        +--------------+-----------------------+--------+
//        |  generation  |  offset (signed)      |  kind  |
//        +--------------+-----------------------+--------+
// kind: CfaRule::Base, and bit 7 if the function begins the frame. Another generation
// than the present one: to be found anew. Two threads may do so at once.
struct Place {
  uint64_t return_address;  // 0: free; set once
  uint64_t rule;
};

constexpr uint64_t kPlaces = uint64_t{1} << 18;
constexpr uint64_t kProbes = 16;
constexpr unsigned kGenerationShift = 40;
constexpr unsigned kOffsetShift = 8;
constexpr uint64_t kBeginsFrame = 0x80;
constexpr uint64_t kBaseMask = 0x7f;

Place places[kPlaces];
uint64_t generation = 1;  // of 24 bits, 0 left out

uint64_t current_generation() { return IpcAtomics::load_relaxed(generation); }

// Neighbours in the code are neighbours in the table; modules are far apart.
uint64_t first_place(uintptr_t address) {
  return (address >> 4) + (address >> 24) * 0x9e37;
}

uint64_t find_rule(uintptr_t function, uintptr_t return_address, uint64_t wanted) {
  // The call stands before the return address: behind a last call of a function that
  // does not return, another one begins.
  const CfaRule rule = find_cfa_rule(return_address - 1);
  uint64_t kind = static_cast<uint64_t>(rule.base);
  if (rule.function != 0 && rule.function == function) kind |= kBeginsFrame;
  return wanted << kGenerationShift |
         uint64_t{static_cast<uint32_t>(rule.offset)} << kOffsetShift | kind;
}

// Not in the table, or of another generation.
__attribute__((noinline)) uint64_t learn_rule(uintptr_t function,
                                              uintptr_t return_address) {
  check_modules();
  const uint64_t wanted = current_generation();
  const uint64_t rule = find_rule(function, return_address, wanted);
  const uint64_t first = first_place(return_address);
  for (uint64_t i = 0; i < kProbes; ++i) {
    Place& place = places[(first + i) % kPlaces];
    uint64_t address = IpcAtomics::load_relaxed(place.return_address);
    if (address == 0 && IpcAtomics::compare_exchange_acq_rel(
                            place.return_address, address, uint64_t{return_address})) {
      address = return_address;
    }
    if (address == return_address) {
      IpcAtomics::store_relaxed(place.rule, rule);
      break;
    }
  }
  return rule;
}

uint64_t rule_for(uintptr_t function, uintptr_t return_address) {
  const uint64_t wanted = current_generation();
  const uint64_t first = first_place(return_address);
  for (uint64_t i = 0; i < kProbes; ++i) {
    Place& place = places[(first + i) % kPlaces];
    const uint64_t address = IpcAtomics::load_relaxed(place.return_address);
    if (address == return_address) {
      const uint64_t rule = IpcAtomics::load_relaxed(place.rule);
      if (rule >> kGenerationShift == wanted) return rule;
      break;
    }
    if (address == 0) break;
  }
  return learn_rule(function, return_address);
}

}  // namespace

FrameLocation locate_frame(uintptr_t function, const HookCall& call) {
  using Base = CfaRule::Base;
  const uint64_t rule = rule_for(function, call.return_address);
  const auto offset = static_cast<uintptr_t>(
      int64_t{static_cast<int32_t>(static_cast<uint32_t>(rule >> kOffsetShift))});
  const uint32_t flags = (rule & kBeginsFrame) != 0 ? ARCTRACE_SHIM_BEGINS_FRAME : 0;
  switch (static_cast<Base>(rule & kBaseMask)) {
    case Base::kStackPointer:
      return {call.stack_pointer + offset, flags};
    case Base::kFramePointer:
      return {call.frame_pointer + offset, flags};
    case Base::kSaved:
      return {*reinterpret_cast<const uintptr_t*>(call.frame_pointer + offset), flags};
    default:
      return {call.stack_pointer, flags | ARCTRACE_SHIM_LOCATION_GUESSED};
  }
}

void forget_frame_rules() {
  // Changes of modules come one at a time, under the loader's lock.
  const uint64_t next = (current_generation() + 1) & ((uint64_t{1} << 24) - 1);
  IpcAtomics::store_relaxed(generation, next == 0 ? 1 : next);
}

}  // namespace arctrace::shim
