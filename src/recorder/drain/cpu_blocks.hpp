// The collector's side of the kernel writer: that its CPUs find blocks, and what they
// lost.
#pragma once

#include <cstdint>
#include <vector>

#include "src/buffer/buffer_view.hpp"
#include "src/buffer/geometry.hpp"
#include "src/recorder/file/record_builder.hpp"

namespace arctrace {

// How long a collector may sleep, at most `at_most`: a BPF program can't wake it, and
// fills a small buffer soon.
long poll_interval_ns(const Geometry& geometry, long at_most);

// How often the clocks are compared: the kernel's records have another one's times.
uint64_t sync_interval_ns(const Geometry& geometry);

// In overwrite mode frees a part of the buffer for the CPUs, and in every mode lets those
// look again that found no block. REQUIRES: the caller is the collector.
void serve_cpus(const BufferView& view);

// LOST, for each CPU, for what it has lost and no LOST has said. Returns what each has
// lost, to be confirmed when the file has it.
std::vector<uint64_t> say_cpu_losses(const BufferView& view, RecordBuilder& said,
                                     uint64_t ticks);
void confirm_cpu_losses(const BufferView& view, const std::vector<uint64_t>& by_cpu);

// What all CPUs have lost.
uint64_t cpu_losses(const BufferView& view);

}  // namespace arctrace
