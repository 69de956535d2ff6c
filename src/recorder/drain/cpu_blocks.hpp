// The collector's side of the kernel writer: it keeps blocks free for the CPUs, and
// reports what they lost.
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

// Adds LOST, for each CPU, for what it has lost and no LOST reports yet. Returns what
// each has lost, to be confirmed when the file has it.
std::vector<uint64_t> report_cpu_losses(const BufferView& view, RecordBuilder& records,
                                        uint64_t ticks);
void confirm_cpu_losses(const BufferView& view, const std::vector<uint64_t>& by_cpu);

}  // namespace arctrace
