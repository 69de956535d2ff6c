// The time that recording added to calls and to their callers (SPEC.md REC-12).
#pragma once

#include <arctrace/format.h>

#include <array>
#include <cstdint>
#include <span>

namespace arctrace::reader {

// The cost of one record. An entry, or an exit, takes half of what a call takes:
// `inside_ps` of the call's own time, and `outside_ps` of its caller's.
struct RecordCost {
  uint64_t inside_ps = 0, outside_ps = 0;
};

// The costs by kind of call. Kinds of which nothing is known cost nothing, but
// compiled-in hooks of a kind of their own cost as much as other compiled-in hooks.
class HookCosts {
 public:
  explicit HookCosts(std::span<const arctrace_hook_cost> costs) {
    std::array<bool, ARCTRACE_HOOK_KINDS> has{};
    for (const arctrace_hook_cost& cost : costs) {
      if (cost.kind >= ARCTRACE_HOOK_KINDS || cost.kind == ARCTRACE_HOOK_PROCESS)
        continue;
      is_known_ = has[cost.kind] = true;
      // Costs are of a pair of records, but those of ARGUMENTS are of one.
      const uint32_t share = cost.kind == ARCTRACE_HOOK_ARGUMENTS ? 1 : 2;
      by_kind_[cost.kind] = {cost.inside_ps / share, cost.outside_ps / share};
    }
    for (const uint32_t kind : {ARCTRACE_HOOK_XRAY, ARCTRACE_HOOK_RETURN}) {
      if (!has[kind]) by_kind_[kind] = by_kind_[ARCTRACE_HOOK_FUNCTION];
    }
  }

  bool is_known() const { return is_known_; }

  // The kind of a call with this frame key. `module_kind`: Module::hook_kind of the
  // function's module, or 0. `is_patched`: functions of the process without a compiled-in
  // hook were patched.
  static uint32_t kind_of_call(uint64_t key, uint32_t module_kind, bool is_patched) {
    if ((key & ARCTRACE_FRAME_NAME_BIT) != 0) {
      return (key & ARCTRACE_FRAME_LIBRARY_BIT) != 0 ? ARCTRACE_HOOK_LIBRARY_CALL
                                                     : ARCTRACE_HOOK_API;
    }
    if (module_kind != 0) return module_kind;
    return is_patched ? ARCTRACE_HOOK_PATCHED : ARCTRACE_HOOK_FUNCTION;
  }
  // The cost of the entry or the exit of a call. `kind`: one that kind_of_call() returns.
  const RecordCost& of_call(uint32_t kind) const { return by_kind_[kind]; }
  // The cost of an ARGUMENTS or a RESULT.
  const RecordCost& of_args() const { return by_kind_[ARCTRACE_HOOK_ARGUMENTS]; }

 private:
  bool is_known_ = false;
  std::array<RecordCost, ARCTRACE_HOOK_KINDS> by_kind_{};
};

}  // namespace arctrace::reader
