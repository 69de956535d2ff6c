// The machine frames of a thread and the calls between them: the stacks on which it runs,
// the frame of a function that was entered, as its hook saw it, and the call edges by
// which an entry is known to come from the innermost open frame.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "src/base/memory.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/hook_abi/shim_types.h"

namespace arctrace::writer {

// A number of items of an array, stored as the offset of the item with that index, so
// that the fast path need not compute that item's address.
template <class Item, class Number>
class OffsetCount {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr OffsetCount(Number count = 0) : offset_(uint64_t{count} * sizeof(Item)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr operator Number() const {
    return static_cast<Number>(offset_ / sizeof(Item));
  }
  constexpr uint64_t offset() const { return offset_; }  // in bytes
  constexpr OffsetCount next() const { return at_offset(offset_ + sizeof(Item)); }
  // The number less one; for 0, more than there can be.
  constexpr OffsetCount previous() const { return at_offset(offset_ - sizeof(Item)); }

  // Reads the number once more, where the compiler would keep it in a register.
  OffsetCount load_anew() const { return at_offset(read_anew(offset_)); }

  // The number in a register of its own (in_register_beside_arguments()).
  OffsetCount beside_arguments() const {
    return at_offset(in_register_beside_arguments<1>(offset_));
  }

 private:
  static constexpr OffsetCount at_offset(uint64_t offset) {
    OffsetCount made;
    made.offset_ = offset;
    return made;
  }

  uint64_t offset_;
};

// Stack addresses [low, high). Empty if they are not known.
struct StackRange {
  uintptr_t low;
  uintptr_t high;
  bool contains(uintptr_t address) const { return address >= low && address < high; }
};

struct ThreadStacks {
  StackRange own;
  StackRange signal;     // sigaltstack's; it may lie inside the own stack
  bool is_signal_known;  // the thread has set it by a hook, or the kernel was asked

  enum class Which : uint8_t { kUnknown, kOwn, kSignal };

  // Whether the frame that ends at `address`, which is read only if the thread has a
  // signal stack, is on it. Most threads have none.
  bool is_on_signal_stack(const uintptr_t& address) const {
    return !is_zero(signal.high) && signal.contains(address - 1);
  }

  // Whether `address` is on the signal stack, with less than `space` bytes of space below
  // it.
  bool is_near_end_of_signal_stack(uintptr_t address, uintptr_t space) const {
    return is_on_signal_stack(address) && address - signal.low < space;
  }

  // The stack of the frame that ends at `address`, that is of the bytes just below it. A
  // signal stack may be the innermost object of a frame; then a frame that this one calls
  // ends where the signal stack begins.
  Which which(uintptr_t address) const {
    if (signal.contains(address - 1)) return Which::kSignal;
    return own.contains(address - 1) ? Which::kOwn : Which::kUnknown;
  }
};

// The version of the table of coroutine stacks (coroutine_stacks.hpp): it changes with
// each change, and is odd during one. 0: no stack was ever made.
extern __attribute__((visibility("hidden"))) uint32_t coroutine_stacks_version;

inline bool has_coroutine_stacks() {
  return __builtin_expect(!is_zero(coroutine_stacks_version), 0);
}

// The current-stack cache: a part of a stack on which a thread is known to run, so that
// nothing has to be looked up. All zero: none.
struct CurrentStackCache {
  uintptr_t from, to;
  uint32_t version;

  // Whether the frame that ends at `address` is there, and the table is still the same.
  bool has(uintptr_t address) const {
    return address > from && address <= to &&
           version == IpcAtomics::load_relaxed(coroutine_stacks_version);
  }
};

inline uint32_t low_half(uintptr_t address) { return static_cast<uint32_t>(address); }

// The machine frame of a function that was entered, as its hook saw it. Comparing two of
// them shows which frames were abandoned without an exit, by longjmp or an exception.
//
// Functions that are inlined into one another share a machine frame: they have the same
// CFA and the same call site, but different hook sites. A call that reuses the stack
// space of an abandoned frame shares only the CFA with that frame, or all three if it is
// the same call again.
//
// The halves of addresses serve only to tell equal from different.
struct MachineFrame {
  MachineFrame() = default;
  explicit MachineFrame(uintptr_t address) : cfa(address) {}
  explicit MachineFrame(const arctrace_shim_call& call)
      : cfa(call.cfa),
        call_site(low_half(call.call_site)),
        hook_site(low_half(call.hook_site)),
        stack_pointer(low_half(call.stack_pointer)),
        flags(call.flags) {}

  uintptr_t cfa = 0;       // the CFA; 0: not known
  uint32_t call_site = 0;  // the address that the frame returns to, low half
  uint32_t hook_site = 0;  // the address that the hook returns to, low half; 0: not known
  union {
    uint32_t stack_pointer = 0;  // at the hook's call, low half
    // The end of the function's code, low half: in a frame that was found open
    // (ARCTRACE_SHIM_WAS_OPEN), which no hook has seen.
    uint32_t found_code_end;
  };
  uint32_t flags = 0;  // enum arctrace_shim_call_flags

  bool has(arctrace_shim_call_flags flag) const {
    return (flags & static_cast<uint32_t>(flag)) != 0;
  }
};

// Whether the frame `open` lies on a part of a stack that is free when a function is
// entered or left at `now`. Frames on other stacks (coroutines) can't be compared: false.
inline bool lies_below(const ThreadStacks& stacks, const MachineFrame& open,
                       const MachineFrame& now) {
  using Which = ThreadStacks::Which;
  const Which stack = stacks.which(now.cfa);
  if (stack == Which::kUnknown) return false;
  const Which open_stack = stacks.which(open.cfa);
  // A thread that runs on its own stack again has no frames on the signal stack any more.
  if (open_stack != stack) return stack == Which::kOwn && open_stack == Which::kSignal;
  if (open.cfa >= now.cfa) return false;
  if (!open.has(ARCTRACE_SHIM_CFA_GUESSED) && !now.has(ARCTRACE_SHIM_CFA_GUESSED)) {
    return true;
  }
  // Guessed CFAs may differ within one machine frame.
  return now.call_site != 0 &&
         (open.call_site != now.call_site || open.hook_site == now.hook_site);
}

// The number that distinguishes the edges of one state of the process' code from those of
// others. It is random, so that edges of two states can't be confused.
extern __attribute__((visibility("hidden"))) uint64_t call_edges_epoch;

// To be called after code was loaded or unloaded. One thread at a time.
void forget_call_edges();

// A call edge says that nothing lies between callee and caller: between the machine frame
// of a function that is entered and the thread's innermost open frame. Finding this out
// takes an unwinder; after that an entry is looked up here.
//
// An edge is the hook site and the call site of the callee, the hook site of the caller,
// and the distance of their frames. If the call comes from the caller's own code, these
// are facts about the code: a function that runs at that distance was recorded when it
// was entered, so an open frame with these properties is the running one. If code without
// hooks lies in between, it has the same frames as when the unwinder ran.
//
// Code can be unloaded, and other code loaded in its place: forget_call_edges() makes all
// edges of all threads unknown.
//
// An edge also has the CFA of the callee, so that its hook need not look that up.
// Therefore an edge is found by the callee's stack pointer at its hook.
//
// Each edge has one place in a table. Programs with a loop that makes hundreds of
// different calls need a larger table than most threads do: otherwise many of these calls
// take the places of others, and the unwinder is called again and again.
//
// The tables are in memory that fork sets to zero in the child, also amid a call of these
// functions: that is an empty table, because no caller or callee has hook site 0. The
// tables' addresses must not be in such memory.
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
    return edge != nullptr && caller.cfa - callee.cfa == edge->distance;
  }

  // As has(), for a stub's call, which has a fixed distance from its stack pointer, and
  // whose call site is its hook site; a call that returns to a stub has another hook
  // site.
  bool has_stub_call(const MachineFrame& caller, uintptr_t stack_pointer,
                     const MachineFrame& callee) const {
    return find<Sites::kEqual>(caller, stack_pointer, callee.call_site,
                               HookSiteOf{callee}) != nullptr;
  }

  // The edge for a callee of which only `call` is known, whose values are computed when
  // asked: stack_pointer(), has_frame_pointer(), call_site(), hook_site(). Null: there is
  // none. It is valid during the writer call.
  template <class Call>
  __attribute__((always_inline)) const Edge* edge_of(const MachineFrame& caller,
                                                     const Call& call) const {
    const Edge* edge = find(caller, call.stack_pointer(), call.call_site(), call);
    if (edge == nullptr) return nullptr;
    if (__builtin_expect((edge->flags & kFoundByStackPointer) != 0, 1)) return edge;
    // The CFA is read once more, so that it need not be kept until here, and in few
    // registers.
    uintptr_t frame_pointer =
        *const_cast<const volatile uintptr_t*>(&caller.cfa) - edge->distance;
    frame_pointer = number_in_register(frame_pointer) -
                    static_cast<uintptr_t>(intptr_t{edge->cfa_offset});
    const bool is_located = call.has_frame_pointer(frame_pointer);
    return is_located ? edge : nullptr;
  }
  // Stores the frame of such an edge's callee, as OpenFrame::store() does. Its sites are
  // those of the edge, so that they need not be kept until here.
  static void store_callee(const Edge& edge, const MachineFrame& caller,
                           uintptr_t stack_pointer, MachineFrame& to) {
    to.call_site = edge.call_site;
    to.hook_site = edge.hook_site;
    // The fence has the values stored one by one: otherwise gcc puts two together before
    // it stores them.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    to.stack_pointer = low_half(stack_pointer);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    to.flags = edge.flags;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    to.cfa = caller.cfa - edge.distance;
  }

  // Adds an edge. True: so many edges have taken the places of others that begin_use() is
  // to be called with a large table. REQUIRES: the writer call is the outermost one, and
  // can_add(). A signal handler that interrupts it finds either no edge there or a whole
  // one.
  bool add(const MachineFrame& caller, const MachineFrame& callee,
           const arctrace_shim_call& call) {
    const uint64_t apart = mixed(caller.cfa - stack_pointer_of(callee));
    Edge& edge = *edge_at(callee.hook_site + callee.call_site + spread(caller), apart);
    if (edge.hook_site != 0) ++replaced_;
    edge.hook_site = 0;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    edge.call_site = callee.call_site;
    edge.stack_distance = apart;
    edge.caller = caller.hook_site;
    edge.distance = low_half(caller.cfa - callee.cfa);
    edge.cfa_offset = cfa_offset(call);
    edge.flags = callee.flags;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    edge.hook_site = callee.hook_site;
    if (replaced_ < kReplacedMax || mask_ != kSmallMask) return false;
    replaced_ = 0;
    return true;
  }

  // Whether both frames are known well enough for an edge.
  static bool can_add(const MachineFrame& caller, const MachineFrame& callee) {
    return caller.cfa >= callee.cfa && caller.cfa - callee.cfa <= UINT32_MAX &&
           caller.hook_site != 0 && callee.hook_site != 0;
  }

  struct Edge {
    uint32_t call_site;       // of the callee, as the next
    uint32_t hook_site;       // 0: there is no edge
    uint64_t stack_distance;  // down to the callee's stack pointer; mixed with the epoch
    uint32_t caller;          // its hook site
    uint32_t distance;        // down to the callee's CFA
    // The distance from the callee's frame pointer to its CFA, if the edge is found by
    // that. 0: it isn't; no CFA is equal to the frame pointer.
    int32_t cfa_offset;
    uint32_t flags;  // of the callee
  };

 private:
  static constexpr uint32_t kSmall = 1024, kLarge = 8192;  // edges
  // By then, the unwinder has taken some milliseconds.
  static constexpr uint32_t kReplacedMax = 4096;
  // A guessed CFA is the stack pointer itself.
  static constexpr uint32_t kFoundByStackPointer =
      ARCTRACE_SHIM_CFA_BY_SP | ARCTRACE_SHIM_CFA_GUESSED;

  // Whether the callee's hook site is its call site, as it is for calls of stubs. No hook
  // that has another call site returns to the same address: it would be the same call
  // instruction.
  enum class Sites : uint8_t { kAny, kEqual };

  struct HookSiteOf {
    const MachineFrame& callee;
    uintptr_t hook_site() const { return callee.hook_site; }
    uint32_t hook_site_added_to(uint32_t sum) const { return sum + callee.hook_site; }
  };

  // The edge that such a call has, apart from the callee's CFA; null: there is none.
  template <Sites kSites = Sites::kAny, class Callee>
  __attribute__((always_inline)) const Edge* find(const MachineFrame& caller,
                                                  uintptr_t stack_pointer,
                                                  uintptr_t call_site,
                                                  const Callee& callee) const {
    const uint64_t apart = mixed(caller.cfa - stack_pointer);
    const uint32_t sites =
        callee.hook_site_added_to(low_half(call_site) + spread(caller));
    const Edge* edge = pointer_in_register(edge_at(sites, apart));
    const bool is_one =
        (kSites == Sites::kEqual || is_equal(edge->call_site, low_half(call_site))) &&
        is_equal(edge->hook_site, low_half(callee.hook_site())) &&
        edge->stack_distance == apart &&
        // The hook site is read once more, so that no register is kept for it.
        is_equal(edge->caller, read_anew(caller.hook_site));
    return is_one ? edge : nullptr;
  }

  static uint64_t mixed(uint64_t stack_distance) {
    return xor_with(stack_distance, call_edges_epoch);
  }
  // A frame's CFA is less than 4 GiB above its stack pointer.
  static uintptr_t stack_pointer_of(const MachineFrame& callee) {
    return callee.cfa - (low_half(callee.cfa) - callee.stack_pointer);
  }
  static int32_t cfa_offset(const arctrace_shim_call& call) {
    if ((call.flags & ARCTRACE_SHIM_CFA_BY_FP) == 0) return 0;
    const auto offset = static_cast<intptr_t>(call.cfa - call.frame_pointer);
    return offset == static_cast<int32_t>(offset) ? static_cast<int32_t>(offset) : 0;
  }
  // Without this, calls of one function from many places, in each of which it calls many
  // others, would have equal sums of sites: their distances are alike.
  static uint32_t spread(const MachineFrame& caller) {
    return caller.hook_site * 0x9E3779B1u;
  }
  // Sites that are a few bytes apart, as those of successive calls or of short functions,
  // have different edges. So do the calls that one function makes when it is called from
  // different places, which are the hook sites of stubs' calls. Recursion through code
  // without hooks has the same sites at several distances.
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
  // A handler that interrupts this finds edges of the table whose address it reads.
  mask_ = kSmallMask;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  table_ = reinterpret_cast<uintptr_t>(large != nullptr ? large->edges : small.edges);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (large != nullptr) mask_ = kLargeMask;
}

// Whether the stack of a call that ends at `address`, by a thread without open frames,
// need not be looked up: the program has no coroutines, or the thread is known to run on
// that stack.
inline bool is_known_stack(const CurrentStackCache& cache, uintptr_t address) {
  return !has_coroutine_stacks() || cache.has(address);
}

}  // namespace arctrace::writer
