// The kernel writer's programs on a CPU of the test's: bpf/append.h over the atomics that
// the test chooses.
// REQUIRES: arctrace::testing::CpuAtomics is declared before it is included.
#pragma once

#include <arctrace/format.h>
#include <sys/cdefs.h>

#include <cstdint>
#include <functional>

#include "bpf/layout.h"
#include "src/buffer/buffer_view.hpp"
#include "src/buffer/clock.hpp"
#include "src/protocol/handout.hpp"

namespace arctrace::testing::cpu_writer {

// These stand in for the maps and constants of bpf/buffer.h.
inline uint8_t* buffer_memory = nullptr;
inline buffer_layout layout{};
inline uint32_t running = 0;  // the CPU whose program runs

inline uint8_t* buffer_base() { return buffer_memory; }
inline uint32_t this_cpu() { return running; }
inline uint64_t monotonic_ns() { return read_monotonic_ns(); }

#define UNROLLED
#define NOT_UNROLLED
#define VERIFIED_ALONE inline
#define OPAQUE(value) asm volatile("" : "+r"(value))
#define PUT(field, value) ((field) = (value))
inline uint64_t clamped(uint64_t value, uint64_t) { return value; }
inline uint64_t times(uint64_t value, uint64_t constant) { return value * constant; }

// A program that comes before access number `after` of the one that runs on the CPU, and
// ends before that one continues.
struct Interrupt {
  uint32_t cpu = 0;
  uint64_t after = UINT64_MAX;
  std::function<void()> program;
};
inline Interrupt interrupt;

// An access of the running program; programs of other CPUs may run before it.
template <class Operation>
auto access(Operation&& operation) {
  struct Resume {
    uint32_t cpu = running;
    ~Resume() { running = cpu; }
  } resume;
  if (running == interrupt.cpu && interrupt.after-- == 0) {
    interrupt.program();
    running = resume.cpu;
  }
  return operation();
}

inline uint32_t load_u32(const uint32_t* word) {
  return access([&] { return CpuAtomics::load_relaxed(const_cast<uint32_t&>(*word)); });
}
inline uint64_t load_u64(const uint64_t* word) {
  return access([&] { return CpuAtomics::load_relaxed(const_cast<uint64_t&>(*word)); });
}
inline void store_u32(uint32_t* word, uint32_t value) {
  access([&] { CpuAtomics::store_relaxed(*word, value); });
}
inline void store_u64(uint64_t* word, uint64_t value) {
  access([&] { CpuAtomics::store_relaxed(*word, value); });
}
inline void store_release_u32(uint32_t* word, uint32_t value) {
  access([&] { CpuAtomics::store_release(*word, value); });
}
inline void store_release_u64(uint64_t* word, uint64_t value) {
  access([&] { CpuAtomics::store_release(*word, value); });
}
inline uint64_t fetch_add_u64(uint64_t* word, uint64_t value) {
  return access([&] { return CpuAtomics::fetch_add_acq_rel(*word, value); });
}
inline bool compare_exchange_u32(uint32_t* word, uint32_t expected, uint32_t desired) {
  return access(
      [&] { return CpuAtomics::compare_exchange_acq_rel(*word, expected, desired); });
}
inline bool compare_exchange_u64(uint64_t* word, uint64_t expected, uint64_t desired) {
  return access(
      [&] { return CpuAtomics::compare_exchange_acq_rel(*word, expected, desired); });
}

#include "bpf/append.h"

// Makes the programs write into this buffer from now on.
inline void use(const BufferView& view) {
  const Geometry& geometry = view.geometry();
  buffer_memory = reinterpret_cast<uint8_t*>(view.base());
  layout = {geometry.blocks_offset,
            geometry.block_size,
            geometry.block_count,
            geometry.cpu_count,
            Handout<CpuAtomics>::most_for_data(geometry),
            geometry.mode == ARCTRACE_MODE_OVERWRITE,
            layout.preemptible,
            false};
}

}  // namespace arctrace::testing::cpu_writer
