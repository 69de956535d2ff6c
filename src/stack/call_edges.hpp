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
// Therefore an edge is found by the callee's stack pointer at its hook.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "src/base/inlined.hpp"
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
  // sites and distances.
  bool has(const MachineFrame& caller, const MachineFrame& callee) const {
    const Edge* edge = find(caller, stack_pointer_of(callee), callee);
    return edge != nullptr && caller.location - callee.location == edge->distance;
  }

  // The same for the call of a stub, which lies at one distance from its stack pointer,
  // and has its call site as its hook site: one that returns to a stub has not.
  bool has_stub_call(const MachineFrame& caller, uintptr_t stack_pointer,
                     const MachineFrame& callee) const {
    return find<Sites::kEqual>(caller, stack_pointer, callee) != nullptr;
  }

  // The edge of a call, from which locate() takes the callee's location and flags.
  struct Edge;

  // The edge for a callee of which only the stack pointer and the sites are known; null:
  // there is none. It is valid during the writer call.
  const Edge* edge_of(const MachineFrame& caller, uintptr_t stack_pointer,
                      uintptr_t frame_pointer, const MachineFrame& callee) const {
    const Edge* edge = find(caller, stack_pointer, callee);
    if (edge == nullptr) return nullptr;
    if (__builtin_expect((edge->flags & kFoundByStackPointer) != 0, 1)) return edge;
    // Read once more, so that it need not be kept until here.
    const uintptr_t location = kept_pointer(&caller)->location - edge->distance;
    const bool is_located = location == located_by_frame_pointer(*edge, frame_pointer);
    return is_located ? edge : nullptr;
  }
  static void locate(const Edge& edge, const MachineFrame& caller, MachineFrame& callee) {
    callee.location = caller.location - edge.distance;
    callee.flags = edge.flags;
  }

  // REQUIRES: the writer call is the outermost one, and can_add(). A signal handler that
  // interrupts it finds either no edge there or a whole one.
  void add(const MachineFrame& caller, const MachineFrame& callee,
           const arctrace_shim_call& call) {
    const uint64_t apart = mixed(caller.location - stack_pointer_of(callee));
    Edge& edge = edges_[offset(callee, apart) / sizeof(Edge)];
    edge.hook_site = 0;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    edge.call_site = callee.call_site;
    edge.stack_distance = apart;
    edge.caller = caller.hook_site;
    edge.distance = low_half(caller.location - callee.location);
    edge.location_offset = location_offset(call);
    edge.flags = callee.flags;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    edge.hook_site = callee.hook_site;
  }

  // Whether both frames are known well enough for an edge.
  static bool can_add(const MachineFrame& caller, const MachineFrame& callee) {
    return caller.location >= callee.location &&
           caller.location - callee.location <= UINT32_MAX && caller.hook_site != 0 &&
           callee.hook_site != 0;
  }

  struct Edge {
    uint32_t hook_site;  // of the callee; 0: there is no edge
    uint32_t call_site;
    uint64_t stack_distance;  // down to the callee's stack pointer; mixed with the epoch
    uint32_t caller;          // its hook site
    uint32_t distance;        // down to the callee's location
    // From the callee's frame pointer to its location, if it is found by that. 0: it
    // isn't; no location is equal to the frame pointer.
    int32_t location_offset;
    uint32_t flags;  // of the callee
  };

 private:
  static constexpr size_t kEdges = 1024;
  // A guessed location is the stack pointer itself.
  static constexpr uint32_t kFoundByStackPointer =
      ARCTRACE_SHIM_LOCATION_BY_SP | ARCTRACE_SHIM_LOCATION_GUESSED;

  // Whether the callee's hook site is its call site, as it is for calls of stubs. No hook
  // that has another call site returns to the same address: it would be the same call
  // instruction.
  enum class Sites : uint8_t { kAny, kEqual };

  // The edge that such a call has, apart from the callee's location; null: there is none.
  template <Sites kSites = Sites::kAny>
  const Edge* find(const MachineFrame& caller, uintptr_t stack_pointer,
                   const MachineFrame& callee) const {
    const uint64_t apart = mixed(caller.location - stack_pointer);
    const Edge* edge = kept_pointer(edge_at(offset(callee, apart)));
    const bool is_one =
        edge->hook_site == callee.hook_site &&
        (kSites == Sites::kEqual || edge->call_site == callee.call_site) &&
        edge->stack_distance == apart && edge->caller == caller.hook_site;
    return is_one ? edge : nullptr;
  }

  static uint64_t mixed(uint64_t stack_distance) {
    return xor_with(stack_distance, call_edges_epoch);
  }
  // A frame's location is less than 4 GiB above its stack pointer.
  static uintptr_t stack_pointer_of(const MachineFrame& callee) {
    return callee.location - (low_half(callee.location) - callee.stack_pointer);
  }
  static uintptr_t located_by_frame_pointer(const Edge& edge, uintptr_t frame_pointer) {
    return frame_pointer + static_cast<uintptr_t>(intptr_t{edge.location_offset});
  }
  static int32_t location_offset(const arctrace_shim_call& call) {
    if ((call.flags & ARCTRACE_SHIM_LOCATION_BY_FP) == 0) return 0;
    const auto offset = static_cast<intptr_t>(call.location - call.frame_pointer);
    return offset == static_cast<int32_t>(offset) ? static_cast<int32_t>(offset) : 0;
  }
  // In bytes. Sites that lie a few bytes apart, as those of calls one after the other or
  // of short functions, have different edges. Recursion through code without hooks has
  // the same sites at several distances.
  static size_t offset(const MachineFrame& callee, uint64_t apart) {
    const uint32_t sites = callee.call_site + callee.hook_site;
    return (8 * sites + static_cast<uint32_t>(apart)) & ((kEdges - 1) * sizeof(Edge));
  }
  const Edge* edge_at(size_t at) const {
    return reinterpret_cast<const Edge*>(reinterpret_cast<uintptr_t>(edges_) + at);
  }

  static_assert(sizeof(Edge) == 32);

  Edge edges_[kEdges];
};

}  // namespace arctrace
