// What a live thread does at present, and how much of the last seconds it was on a CPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace arctrace::reader {

enum class CpuSource : uint8_t {
  kNone,    // nothing is known
  kKernel,  // the kernel's records of the session
  kProc,    // /proc, at this moment
};

struct LiveCpu {
  CpuSource source = CpuSource::kNone;
  std::string state;       // "running", "ready: woken", "blocked: sleeps", "not known"
  bool is_on_cpu = false;  // only of kKernel: /proc does not tell running from ready
  int64_t for_ns = -1;     // how long the state has lasted; negative: not known
  // Of the last `wall_ns`, at most of a window: on a CPU; and, if has_ready, without one
  // although the thread could have run. wall_ns is 0 as long as nothing is known of it.
  uint64_t wall_ns = 0, cpu_ns = 0, ready_ns = 0;
  uint64_t unknown_ns = 0;  // of it, in no known state: records of the kernel are missing
  bool has_ready = false;
  std::vector<uint64_t> history;  // thousandths on a CPU of each piece, the newest last
};

}  // namespace arctrace::reader
