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
//
// Each edge has one place in a table. Programs of which a loop makes hundreds of
// different calls need a larger one than most threads do: otherwise many of these calls
// take the places of others, and the unwinder is asked again and again.
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
extern __attribute__((visibility("hidden"))) uint64_t call_edges_epoch;

// To be called after code was loaded or unloaded. One thread at a time.
void forget_call_edges();

// What a thread knows. The tables are memory which fork makes all zero in the child, also
// amid a call of these functions: that is an empty table, because no caller or callee has
// hook site 0. Where they are must not lie in such memory.
class CallEdges {
 public:
  struct Edge;
  struct SmallTable;
  struct LargeTable;

  // To be called before any other use. Null: the thread has no large table.
  void begin_use(SmallTable& small, LargeTable* large);

  // Whether this call of `callee` by `caller` was added, or another one with the same
  // sites and distances.
  bool has(const MachineFrame& caller, const MachineFrame& callee) const {
    const Edge* edge =
        find(caller, stack_pointer_of(callee), callee.call_site, HookSiteOf{callee});
    return edge != nullptr && caller.location - callee.location == edge->distance;
  }

  // The same for the call of a stub, which lies at one distance from its stack pointer,
  // and has its call site as its hook site: one that returns to a stub has not.
  bool has_stub_call(const MachineFrame& caller, uintptr_t stack_pointer,
                     const MachineFrame& callee) const {
    return find<Sites::kEqual>(caller, stack_pointer, callee.call_site,
                               HookSiteOf{callee}) != nullptr;
  }

  // The edge for a callee of which only what `call` says is known, when it is asked:
  // stack_pointer(), has_frame_pointer(), call_site(), hook_site(). Null: there is none.
  // It is valid during the writer call.
  template <class Call>
  __attribute__((always_inline)) const Edge* edge_of(const MachineFrame& caller,
                                                     const Call& call) const {
    const Edge* edge = find(caller, call.stack_pointer(), call.call_site(), call);
    if (edge == nullptr) return nullptr;
    if (__builtin_expect((edge->flags & kFoundByStackPointer) != 0, 1)) return edge;
    // Read once more, so that it need not be kept until here, and in few registers.
    uintptr_t frame_pointer =
        *const_cast<const volatile uintptr_t*>(&caller.location) - edge->distance;
    frame_pointer = kept_number(frame_pointer) -
                    static_cast<uintptr_t>(intptr_t{edge->location_offset});
    const bool is_located = call.has_frame_pointer(frame_pointer);
    return is_located ? edge : nullptr;
  }
  // Stores the frame of such an edge's callee, as OpenFrame::store() does. Its sites are
  // those of the edge, so that they need not be kept until here.
  static void store_callee(const Edge& edge, const MachineFrame& caller,
                           uintptr_t stack_pointer, MachineFrame& to) {
    to.call_site = edge.call_site;
    to.hook_site = edge.hook_site;
    // One by one: otherwise gcc puts two values together before it stores them.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    to.stack_pointer = low_half(stack_pointer);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    to.flags = edge.flags;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    to.location = caller.location - edge.distance;
  }

  // True: so many edges have taken the places of others that a large table is wanted,
  // which begin_use() is to be called with. REQUIRES: the writer call is the outermost
  // one, and can_add(). A signal handler that interrupts it finds either no edge there or
  // a whole one.
  bool add(const MachineFrame& caller, const MachineFrame& callee,
           const arctrace_shim_call& call) {
    const uint64_t apart = mixed(caller.location - stack_pointer_of(callee));
    Edge& edge = *edge_at(callee.hook_site + callee.call_site + spread(caller), apart);
    if (edge.hook_site != 0) ++replaced_;
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
    if (replaced_ < kReplacedMax || mask_ != kSmallMask) return false;
    replaced_ = 0;
    return true;
  }

  // Whether both frames are known well enough for an edge.
  static bool can_add(const MachineFrame& caller, const MachineFrame& callee) {
    return caller.location >= callee.location &&
           caller.location - callee.location <= UINT32_MAX && caller.hook_site != 0 &&
           callee.hook_site != 0;
  }

  struct Edge {
    uint32_t call_site;       // of the callee, as the next
    uint32_t hook_site;       // 0: there is no edge
    uint64_t stack_distance;  // down to the callee's stack pointer; mixed with the epoch
    uint32_t caller;          // its hook site
    uint32_t distance;        // down to the callee's location
    // From the callee's frame pointer to its location, if it is found by that. 0: it
    // isn't; no location is equal to the frame pointer.
    int32_t location_offset;
    uint32_t flags;  // of the callee
  };

 private:
  static constexpr uint32_t kSmall = 1024, kLarge = 8192;  // edges
  // The unwinder has taken some milliseconds then.
  static constexpr uint32_t kReplacedMax = 4096;
  // A guessed location is the stack pointer itself.
  static constexpr uint32_t kFoundByStackPointer =
      ARCTRACE_SHIM_LOCATION_BY_SP | ARCTRACE_SHIM_LOCATION_GUESSED;

  // Whether the callee's hook site is its call site, as it is for calls of stubs. No hook
  // that has another call site returns to the same address: it would be the same call
  // instruction.
  enum class Sites : uint8_t { kAny, kEqual };

  struct HookSiteOf {
    const MachineFrame& callee;
    uintptr_t hook_site() const { return callee.hook_site; }
    uint32_t hook_site_added_to(uint32_t sum) const { return sum + callee.hook_site; }
  };

  // The edge that such a call has, apart from the callee's location; null: there is none.
  template <Sites kSites = Sites::kAny, class Callee>
  __attribute__((always_inline)) const Edge* find(const MachineFrame& caller,
                                                  uintptr_t stack_pointer,
                                                  uintptr_t call_site,
                                                  const Callee& callee) const {
    const uint64_t apart = mixed(caller.location - stack_pointer);
    const uint32_t sites =
        callee.hook_site_added_to(low_half(call_site) + spread(caller));
    const Edge* edge = kept_pointer(edge_at(sites, apart));
    const bool is_one =
        (kSites == Sites::kEqual || is_equal(edge->call_site, low_half(call_site))) &&
        is_equal(edge->hook_site, low_half(callee.hook_site())) &&
        edge->stack_distance == apart &&
        // Read once more, so that no register is kept for it.
        is_equal(edge->caller, read_anew(caller.hook_site));
    return is_one ? edge : nullptr;
  }

  static uint64_t mixed(uint64_t stack_distance) {
    return xor_with(stack_distance, call_edges_epoch);
  }
  // A frame's location is less than 4 GiB above its stack pointer.
  static uintptr_t stack_pointer_of(const MachineFrame& callee) {
    return callee.location - (low_half(callee.location) - callee.stack_pointer);
  }
  static int32_t location_offset(const arctrace_shim_call& call) {
    if ((call.flags & ARCTRACE_SHIM_LOCATION_BY_FP) == 0) return 0;
    const auto offset = static_cast<intptr_t>(call.location - call.frame_pointer);
    return offset == static_cast<int32_t>(offset) ? static_cast<int32_t>(offset) : 0;
  }
  // Calls of one function from many places, by each of which it calls many others, would
  // have equal sums of sites: their distances are alike.
  static uint32_t spread(const MachineFrame& caller) {
    return caller.hook_site * 0x9E3779B1u;
  }
  // Sites that lie a few bytes apart, as those of calls one after the other or of short
  // functions, have different edges. So have the calls that one function makes when it is
  // called from different places, which are the hook sites of stubs' calls. Recursion
  // through code without hooks has the same sites at several distances.
  __attribute__((always_inline)) Edge* edge_at(uint32_t sites, uint64_t apart) const {
    const uint64_t offset = uint64_t{8 * sites + static_cast<uint32_t>(apart)} & mask_;
    return reinterpret_cast<Edge*>(table_ + offset);
  }

  static_assert(sizeof(Edge) == 32);
  static constexpr uint64_t kSmallMask = (kSmall - 1) * sizeof(Edge);
  static constexpr uint64_t kLargeMask = (kLarge - 1) * sizeof(Edge);

  uintptr_t table_;    // address of the first edge
  uint64_t mask_;      // of the edges' offsets in the table, in bytes
  uint32_t replaced_;  // edges that took the places of others since the last begin_use()
};

struct CallEdges::SmallTable {
  Edge edges[kSmall];
};

struct CallEdges::LargeTable {
  Edge edges[kLarge];
};

inline void CallEdges::begin_use(SmallTable& small, LargeTable* large) {
  replaced_ = 0;
  // A handler that interrupts this finds edges of the table that it sees.
  mask_ = kSmallMask;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  table_ = reinterpret_cast<uintptr_t>(large != nullptr ? large->edges : small.edges);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (large != nullptr) mask_ = kLargeMask;
}

}  // namespace arctrace
