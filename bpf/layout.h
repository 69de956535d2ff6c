// The facts about the buffer that the loader stores into the kernel writer's programs
// before it loads them, so that the verifier takes them for constants. C and C++.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct buffer_layout {
  uint64_t blocks_offset;
  uint32_t block_size;
  uint32_t block_count;
  uint32_t cpu_count;
  uint32_t data_blocks;  // the others are reserved for definitions (SPEC.md WRT-10)
  bool overwrites;       // closed blocks count as freed
  bool preemptible;      // programs may be preempted by others of their CPU: PREEMPT_RT
  bool casts;            // the kernel has bpf_rdonly_cast(): Linux 6.2
};

#define TGIDS (4u << 20)  // PID_MAX_LIMIT
#define TRACED_WORDS (TGIDS / 64)
#define PARENTS 16

// The processes that are recorded, which the loader and the programs change.
struct selection {
  // One bit for each possible tgid: set by the loader, and by the programs for all that
  // these processes fork.
  uint64_t traced[TRACED_WORDS];
  // The tgids of processes that are not recorded but whose children are; 0: none.
  uint32_t parents[PARENTS];
};
