// The collector's side of the kernel writer: blocks for its CPUs, and what they lost.
#pragma once

#include <cstdint>
#include <vector>

#include "src/buffer_view.hpp"
#include "src/collector/record_builder.hpp"

namespace arctrace {

// Sees to it that each CPU has blocks to spare, as many as a fourth of the buffer's give.
// REQUIRES: the caller is the collector.
void feed_cpus(const BufferView& view);

// LOST, for each CPU, for what it has lost and no LOST has said. Returns what each has
// lost, to be confirmed when the file has it.
std::vector<uint64_t> say_cpu_losses(const BufferView& view, RecordBuilder& said,
                                     uint64_t ticks);
void confirm_cpu_losses(const BufferView& view, const std::vector<uint64_t>& by_cpu);

// What all CPUs have lost.
uint64_t cpu_losses(const BufferView& view);

}  // namespace arctrace
