// Parses the records of perf's rings (linux/perf_event.h) that perf_ring.cpp asks for.
// PerfWriter turns them into records of ours.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace arctrace {

// One record. The layout is that of the attributes in perf_ring.cpp: each record ends
// with u32 pid, tid; u64 time; u32 cpu, 0 (sample_id_all).
struct PerfRecord {
  enum class Kind : uint8_t {
    kSwitchIn,   // the thread got a CPU
    kPreempted,  // the thread lost its CPU, and could have run on
    kBlocked,    // the thread gave its CPU up
    kFork,       // the thread made `child`
    kExec,       // the thread executes another program, `name`
    kExit,
    kOther,  // not recorded
  };
  struct Thread {
    uint32_t pid, tid;  // in the PID namespace of the process that opened the event

    // False for a thread that had ended, or that has no number in that namespace.
    bool is_known() const {
      return tid != 0 && tid < 0x80000000u && pid != 0 && pid < 0x80000000u;
    }
  };

  Kind kind = Kind::kOther;
  Thread thread{};
  Thread child{};
  uint64_t time_ns = 0;  // CLOCK_MONOTONIC
  std::array<char, 16> name{};
};

// Takes the first record off `bytes`, a private copy. nullopt: the bytes do not begin
// with a whole record.
std::optional<PerfRecord> next_perf_record_untrusted(std::span<const std::byte>& bytes);

}  // namespace arctrace
