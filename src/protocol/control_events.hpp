// Control events, in the control page (SPEC.md BUF-6): changes of what is recorded, and
// execs. The process that causes one notes its time, and the recorder makes records of
// them.
#pragma once

#include <arctrace/format.h>

#include <cstdint>

#include "src/base/shared_atomics.hpp"
#include "src/buffer/buffer_view.hpp"
#include "src/protocol/live_filter.hpp"
#include "src/protocol/record_filter.hpp"

namespace arctrace {

// The control events of one kind.
struct ControlEvents {
  arctrace_moments& area;
  uint32_t retained;  // how many entries are retained

  arctrace_moment& entry(uint32_t n) const {
    return reinterpret_cast<arctrace_moment*>(&area + 1)[n % retained];
  }
};

// The value of a control event of gate_changes().
struct GateChange {
  uint32_t recorded;  // as ENABLED has it (recorded_now())
  // The low bits of the filters' generations.
  uint32_t live_generation, record_generation;

  static constexpr uint32_t kRecordedBits = 10, kGenerationBits = 11;
  static constexpr uint32_t kRecordedMask = (1u << kRecordedBits) - 1;
  static constexpr uint32_t kGenerationMask = (1u << kGenerationBits) - 1;
  static GateChange unpack(uint32_t value) {
    return {value & kRecordedMask, value >> kRecordedBits & kGenerationMask,
            value >> (kRecordedBits + kGenerationBits)};
  }
  uint32_t pack() const {
    return (recorded & kRecordedMask) |
           (live_generation & kGenerationMask) << kRecordedBits |
           record_generation << (kRecordedBits + kGenerationBits);
  }
};
static_assert((ARCTRACE_GATE_ALL | ARCTRACE_KERNEL_EVENTS_ALL
                                       << ARCTRACE_KERNEL_EVENT_SHIFT) ==
              GateChange::kRecordedMask);

// The classes of records that are recorded: the gate's bits, and above them those of the
// kernel's events, if there are records of the kernel's.
inline uint32_t recorded_now(const BufferView& view) {
  arctrace_control& control = view.control();
  const uint32_t gate = IpcAtomics::load_relaxed(control.gate) & ARCTRACE_GATE_ALL;
  if ((gate & ARCTRACE_GATE_KERNEL) == 0) return gate;
  const uint32_t events =
      IpcAtomics::load_relaxed(control.kernel_recorded) & ARCTRACE_KERNEL_EVENTS_ALL;
  return gate | events << ARCTRACE_KERNEL_EVENT_SHIFT;
}

// The value of a control event of execs(): the pid, and how much later the program may
// have been executed, rounded up by 7 % at most.
struct ExecEvent {
  uint32_t pid;
  uint64_t within_ticks;

  static constexpr uint32_t kPidBits = 22;  // PID_MAX_LIMIT of the kernel
  static constexpr uint32_t kDigitsMax = 0x1F, kShiftMax = 0x1F;
  static ExecEvent unpack(uint32_t value) {
    return {value & ((uint32_t{1} << kPidBits) - 1),
            uint64_t{value >> kPidBits & kDigitsMax} << (value >> (kPidBits + 5))};
  }
  uint32_t pack() const {
    uint32_t shift = 0;
    const auto digits = [&] {
      return (within_ticks >> shift) +
             ((within_ticks & ((uint64_t{1} << shift) - 1)) != 0 ? 1 : 0);
    };
    while (digits() > kDigitsMax && shift < kShiftMax) ++shift;
    const auto rounded =
        static_cast<uint32_t>(digits() < kDigitsMax ? digits() : kDigitsMax);
    return (pid & ((uint32_t{1} << kPidBits) - 1)) | rounded << kPidBits |
           shift << (kPidBits + 5);
  }
};

static_assert(ARCTRACE_GATE_CHANGES_OFFSET ==
              ARCTRACE_LIVE_FILTER_OFFSET + sizeof(arctrace_live_filter));
static_assert(ARCTRACE_EXECS_OFFSET ==
              ARCTRACE_GATE_CHANGES_OFFSET + sizeof(arctrace_moments) +
                  ARCTRACE_GATE_CHANGES_KEPT * sizeof(arctrace_moment));
static_assert(ARCTRACE_EXECS_OFFSET + sizeof(arctrace_moments) +
                  ARCTRACE_EXECS_KEPT * sizeof(arctrace_moment) <=
              ARCTRACE_CPUS_OFFSET);

inline ControlEvents gate_changes(const BufferView& view) {
  return {
      *reinterpret_cast<arctrace_moments*>(view.base() + ARCTRACE_GATE_CHANGES_OFFSET),
      ARCTRACE_GATE_CHANGES_KEPT};
}

inline ControlEvents execs(const BufferView& view) {
  return {*reinterpret_cast<arctrace_moments*>(view.base() + ARCTRACE_EXECS_OFFSET),
          ARCTRACE_EXECS_KEPT};
}

inline void note_control_event(const ControlEvents& events, uint64_t ticks,
                               uint32_t value) {
  const uint32_t n = IpcAtomics::fetch_add_relaxed(events.area.count, uint32_t{1});
  arctrace_moment& event = events.entry(n);
  IpcAtomics::store_relaxed(event.round, uint32_t{0});
  IpcAtomics::store_release(event.ticks, ticks);
  IpcAtomics::store_relaxed(event.value, value);
  IpcAtomics::store_release(event.round, n + 1);  // S1
}

// Notes that the gate, the kernel's events and the filters are as they are now.
inline void note_gate_change(const BufferView& view, uint64_t ticks) {
  const GateChange change{recorded_now(view),
                          IpcAtomics::load_relaxed(live_filter_area(view).round),
                          IpcAtomics::load_relaxed(record_filter_area(view).round)};
  note_control_event(gate_changes(view), ticks, change.pack());
}

// Calls use(ticks, value) for each control event after the first `seen` ones that is
// still retained, in order, and returns how many there are now. An event that is being
// noted is skipped until the next call.
template <class Use>
uint32_t for_each_control_event_untrusted(const ControlEvents& events, uint32_t seen,
                                          const Use& use) {
  const uint32_t count = IpcAtomics::load_acquire(events.area.count);
  if (count - seen > events.retained) seen = count - events.retained;
  for (; seen != count; ++seen) {
    arctrace_moment& event = events.entry(seen);
    const uint32_t round = IpcAtomics::load_acquire(event.round);  // S2
    if (round == 0) break;
    if (round != seen + 1) continue;  // another control event took its entry
    const uint64_t ticks = IpcAtomics::load_relaxed(event.ticks);
    use(ticks, IpcAtomics::load_relaxed(event.value));
  }
  return seen;
}

}  // namespace arctrace
