// The collector's side of the kernel writer: it keeps blocks free for the CPUs and
// reports their losses.
#pragma once

#include <cstdint>
#include <vector>

#include "src/buffer/buffer_view.hpp"
#include "src/buffer/geometry.hpp"
#include "src/recorder/file/record_builder.hpp"

namespace arctrace {

// How long a collector may sleep, at most `at_most` ns. It must not be long, because a
// BPF program can't wake the collector and soon fills a small buffer.
long poll_interval_ns(const Geometry& geometry, long at_most);

// The size from which on a buffer is large enough for the records of so many CPUs: less
// is full before a recorder that is late on a busy machine gets a CPU.
uint64_t least_kernel_buffer(uint32_t cpus);

// How often the clocks are compared. With kernel records it is more often, because their
// times are those of CLOCK_MONOTONIC.
uint64_t sync_interval_ns(const Geometry& geometry);

// Lets the CPUs that found no block search again; in overwrite mode first frees a part of
// the buffer for them. REQUIRES: the caller is the collector.
void serve_cpus(const BufferView& view);

// Adds a LOST record for each CPU with losses that no LOST record reports yet. Returns
// the losses of each CPU, for confirm_cpu_losses() once the file has the records.
std::vector<uint64_t> report_cpu_losses(const BufferView& view, RecordBuilder& records,
                                        uint64_t ticks);
void confirm_cpu_losses(const BufferView& view, const std::vector<uint64_t>& by_cpu);

}  // namespace arctrace
