// The calls of which a thread knows that nothing lies between callee and caller: between
// the machine frame of a function that is entered and the thread's innermost open frame.
// Finding this out takes an unwinder; after that an entry is looked up here.
//
// An edge is the hook site and the call site of the callee, the hook site of the caller,
// and how far their frames lie apart. If the call comes from the caller's own code, these
// are facts about the code: a function that runs at that distance was recorded when it
// was entered, so an open frame with these properties is the running one. If code without
// hooks lies in between, it has the same frames as when the unwinder looked.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "src/stack/machine_frame.hpp"

namespace arctrace {

// All zero is a valid empty table, because no caller or callee has hook site 0.
class CallEdges {
 public:
  // Whether this call of `callee` by `caller` was added, or another one with the same
  // sites and distance.
  bool has(const MachineFrame& caller, const MachineFrame& callee) const {
    const uint64_t distance = caller.location - callee.location;
    const Edge& edge = edges_[index(callee, distance)];
    return edge.sites == sites(callee) && edge.caller == caller_word(caller, distance) &&
           distance <= UINT32_MAX;
  }

  // REQUIRES: the writer call is the outermost one, and can_add(). A signal handler that
  // interrupts it finds either no edge there or a whole one.
  void add(const MachineFrame& caller, const MachineFrame& callee) {
    const uint64_t distance = caller.location - callee.location;
    Edge& edge = edges_[index(callee, distance)];
    edge.sites = 0;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    edge.caller = caller_word(caller, distance);
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
    uint64_t sites;   // the callee's hook site, above its call site
    uint64_t caller;  // the distance, above the caller's hook site
  };
  static constexpr unsigned kIndexBits = 10;

  static uint64_t sites(const MachineFrame& callee) {
    return uint64_t{callee.hook_site} << 32 | callee.call_site;
  }
  static uint64_t caller_word(const MachineFrame& caller, uint64_t distance) {
    return distance << 32 | caller.hook_site;
  }
  // Recursion through code without hooks has the same sites at several distances.
  static uint32_t index(const MachineFrame& callee, uint64_t distance) {
    const uint32_t mixed =
        callee.call_site + 8 * callee.hook_site + static_cast<uint32_t>(distance);
    return mixed * 0x9E3779B1U >> (32 - kIndexBits);
  }

  Edge edges_[size_t{1} << kIndexBits];
};

}  // namespace arctrace
