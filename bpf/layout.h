// What the kernel writer's programs are told of their buffer before they are loaded,
// which makes it constants to the verifier. C and C++.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct buffer_layout {
  uint64_t blocks_offset;
  uint32_t block_size;
  uint32_t block_count;
  uint32_t cpu_count;
  bool overwrites;   // closed blocks count as freed
  bool preemptible;  // programs, by others of their CPU: PREEMPT_RT
  bool casts;        // the kernel has bpf_rdonly_cast(): Linux 6.2
};
