// The calls of which a thread knows that nothing lies between callee and caller: between
// the machine frame of a function that is entered and the thread's innermost open frame.
// Finding this out takes an unwinder; after that an entry is looked up here.
//
// An edge is the hook site and the call site of the callee, the hook site of the caller,
// and how far their frames lie apart. If the call comes from the caller's own code, these
// are facts about the code: a function that runs at that distance was recorded when it
// was entered, so an open frame with these properties is the running one. If code without
// hooks lies in between, it has the same frames as when the unwinder looked.
//
// Code can be unloaded, and other code loaded in its place: forget_call_edges() makes all
// edges of all threads unknown.
//
// An edge also tells where the callee's frame is, so that its hook need not look that up.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "src/hook_abi/shim_types.h"
#include "src/stack/machine_frame.hpp"

namespace arctrace {

// Distinguishes the edges of one state of the process' code from those of others. A
// random number, so that edges of two states can't be confused.
extern uint64_t call_edges_epoch;

// To be called after code was loaded or unloaded. One thread at a time.
void forget_call_edges();

// All zero is a valid empty table, because no caller or callee has hook site 0.
class CallEdges {
 public:
  // Whether this call of `callee` by `caller` was added, or another one with the same
  // sites and distance.
  bool has(const MachineFrame& caller, const MachineFrame& callee) const {
    const Edge& edge = edges_[index(caller, callee)];
    return edge.sites == sites(callee) && is_call_by(edge, caller, callee.location);
  }

  // The same for a callee of which only the stack pointer and the sites are known; if it
  // is true, sets the rest of it too.
  bool locate(const MachineFrame& caller, uintptr_t stack_pointer,
              uintptr_t frame_pointer, MachineFrame& callee) const {
    const Edge& edge = edges_[index(caller, callee)];
    if (edge.sites != sites(callee)) return false;
    const uintptr_t base =
        (edge.flags & ARCTRACE_SHIM_LOCATION_BY_FP) != 0 ? frame_pointer : stack_pointer;
    callee.location = base + static_cast<uintptr_t>(intptr_t{edge.location_offset});
    callee.flags = edge.flags;
    return is_call_by(edge, caller, callee.location);
  }

  // REQUIRES: the writer call is the outermost one, and can_add(). A signal handler that
  // interrupts it finds either no edge there or a whole one.
  void add(const MachineFrame& caller, const MachineFrame& callee,
           const arctrace_shim_call& call) {
    Edge& edge = edges_[index(caller, callee)];
    edge.sites = 0;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    edge.caller = caller_word(caller, caller.location - callee.location);
    edge.location_offset = location_offset(call);
    edge.flags = callee.flags;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    edge.sites = sites(callee);
  }

  // Whether both frames are known well enough for an edge.
  static bool can_add(const MachineFrame& caller, const MachineFrame& callee) {
    return caller.location >= callee.location &&
           caller.location - callee.location <= UINT32_MAX && caller.hook_site != 0 &&
           callee.hook_site != 0;
  }

 private:
  struct Edge {
    uint64_t sites;   // the callee's hook site, above its call site; mixed with the epoch
    uint64_t caller;  // the distance, above the caller's hook site
    // From the callee's stack pointer or frame pointer, as `flags` say, to its location.
    // 0 if it can't be found from there: no location is equal to one of them.
    int32_t location_offset;
    uint32_t flags;  // of the callee
  };
  static constexpr unsigned kIndexBits = 10;

  static uint64_t sites(const MachineFrame& callee) {
    return (uint64_t{callee.hook_site} << 32 | callee.call_site) ^
           __atomic_load_n(&call_edges_epoch, __ATOMIC_RELAXED);
  }
  static uint64_t caller_word(const MachineFrame& caller, uint64_t distance) {
    return distance << 32 | caller.hook_site;
  }
  static bool is_call_by(const Edge& edge, const MachineFrame& caller,
                         uintptr_t location) {
    const uint64_t distance = caller.location - location;
    return edge.caller == caller_word(caller, distance) && distance <= UINT32_MAX;
  }
  static int32_t location_offset(const arctrace_shim_call& call) {
    uintptr_t base = call.location;
    if ((call.flags & ARCTRACE_SHIM_LOCATION_BY_SP) != 0) base = call.stack_pointer;
    if ((call.flags & ARCTRACE_SHIM_LOCATION_BY_FP) != 0) base = call.frame_pointer;
    const auto offset = static_cast<intptr_t>(call.location - base);
    return offset == static_cast<int32_t>(offset) ? static_cast<int32_t>(offset) : 0;
  }
  // Recursion through code without hooks has the same sites at several distances.
  static uint32_t index(const MachineFrame& caller, const MachineFrame& callee) {
    const uint32_t distance = low_half(caller.location) - callee.stack_pointer;
    const uint32_t mixed = callee.call_site + 8 * callee.hook_site + distance;
    return mixed * 0x9E3779B1U >> (32 - kIndexBits);
  }

  Edge edges_[size_t{1} << kIndexBits];
};

}  // namespace arctrace
