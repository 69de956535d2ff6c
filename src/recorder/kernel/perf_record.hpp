// The records of perf's rings (linux/perf_event.h), as far as we ask for them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace arctrace {

// What perf_ring.cpp asks for, without which the records' layout is another one: each
// ends with u32 pid, tid; u64 time; u32 cpu, 0 (sample_id_all).
struct PerfRecord {
  enum class Kind : uint8_t {
    kSwitchIn,   // the thread got a CPU
    kPreempted,  // it lost its CPU, and could have run on
    kBlocked,    // it gave it up
    kFork,       // it made `child`
    kExec,       // it executes another program, `name`
    kExit,
    kOther,  // nothing that we record
  };
  struct Thread {
    uint32_t pid, tid;  // as the PID namespace of who opened the event numbers them

    // Not one that had ended, or that the namespace does not have.
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

// Takes the first record off `bytes`, which are a copy. Nothing: there is no whole one,
// and what is left is none.
std::optional<PerfRecord> next_perf_record_untrusted(std::span<const std::byte>& bytes);

}  // namespace arctrace
