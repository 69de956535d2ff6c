// Which functions of a trace are not complete, because calls of them were left out on
// purpose while it was recorded. The causes are patched functions that were switched off
// (SPEC.md PATCHES), functions of which a filter may have left out calls (FLT-1, REC-13),
// and functions that stand for events of the kernel's that were switched on and off
// (KRN-9). Losses and gaps are no part of this: they concern whatever a thread does
// meanwhile.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reader/replay/replay.hpp"

namespace arctrace::reader {

// What excluded calls from the recording, and when.
struct LeftOut {
  std::string by;  // "switched off", "ctl -N mem_*", "-t 1ms"; raw bytes
  // nullopt: from the beginning on, or to the end, of the time that was replayed.
  std::optional<int64_t> from_ns, to_ns;
};

// How completely the calls of one function were recorded.
struct RecordedState {
  // None of the calls were recorded from its from_ns on, in one process at least.
  std::optional<LeftOut> until;
  // The times in which some calls, or all, were left out: how many is not known.
  std::vector<LeftOut> partly;

  bool is_complete() const { return !until.has_value() && partly.empty(); }
};

// What excluded calls from the replayed time, and how many functions are known to be
// concerned. A filter that excludes functions altogether concerns none that has a row.
struct CallsLeftOut {
  LeftOut what;
  bool is_filter = false;  // false: functions were switched off, the first of them then
  uint64_t functions = 0;
  bool is_live = false;  // it was set while programs ran
};

// Takes time for each node of the call tree, and for each function and filter. The number
// of filters that are told apart is bounded.
class RecordedStates {
 public:
  // REQUIRES: `replay` is finished, and not needed any more.
  explicit RecordedStates(Replay& replay);

  const RecordedState& of(FunctionId function) const;
  // The functions that are not complete, in order, among those that have a node in the
  // call tree.
  std::span<const FunctionId> incomplete() const { return incomplete_; }
  std::span<const CallsLeftOut> causes() const { return causes_; }

  // Calls use(function, what) for each time in which calls of a function were left out;
  // kRootFunction stands for functions without a node.
  template <class Use>
  void for_each(const Use& use) const {
    for (const FunctionId function : incomplete_) {
      const RecordedState& state = of(function);
      for (const LeftOut& what : state.partly) use(function, what);
      if (state.until.has_value()) use(function, *state.until);
    }
    for (const CallsLeftOut& cause : causes_) {
      if (cause.functions == 0) use(kRootFunction, cause.what);
    }
  }

 private:
  std::vector<RecordedState> states_;  // by FunctionId
  std::vector<FunctionId> incomplete_;
  std::vector<CallsLeftOut> causes_;
};

}  // namespace arctrace::reader
