// The collector's side of the kernel writer: keeps blocks free for the CPUs, and writes
// LOST records of their losses, in overwrite mode by a thread of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "src/buffer/buffer_view.hpp"
#include "src/recorder/file/trace_file.hpp"

namespace arctrace::recorder {

// The longest time that a collector may sleep, at most `at_most` ns. It must not be long,
// because a BPF program can't wake the collector and soon fills a small buffer.
long poll_interval_ns(const Geometry& geometry, long at_most);

// The size from which on a buffer is large enough for the records of so many CPUs: a
// smaller one is full before a recorder that is late on a busy machine gets a CPU.
uint64_t least_kernel_buffer(uint32_t cpus);

// The interval at which the clocks are compared. It is shorter with kernel records,
// because their times are those of CLOCK_MONOTONIC.
uint64_t sync_interval_ns(const Geometry& geometry);

// Lets the CPUs that found no block search again; in overwrite mode first frees a part of
// the buffer for them. REQUIRES: the caller is the collector.
void serve_cpus(const BufferView& view);

// Adds a LOST record for each CPU with losses that no LOST record has counted yet.
// Returns the losses of each CPU, for confirm_cpu_losses() once the file has the records.
std::vector<uint64_t> report_cpu_losses(const BufferView& view, RecordBuilder& records,
                                        uint64_t ticks);
void confirm_cpu_losses(const BufferView& view, const std::vector<uint64_t>& by_cpu);

// A thread that keeps blocks free for the CPUs in overwrite mode. It does nothing else,
// so that neither a snapshot that is being written nor other work keeps it from that.

// Has the calling thread run before others as soon as it has something to do, as far as
// its rights allow. A recorder of the kernel's records that gets a CPU too late loses
// some.
void hurry_this_thread();

class CpuServer {
 public:
  CpuServer() = default;
  ~CpuServer() { stop(); }
  CpuServer(const CpuServer&) = delete;
  CpuServer& operator=(const CpuServer&) = delete;

  // Begins to serve the CPUs of the buffer, which must outlive this object. REQUIRES: the
  // caller is the collector, and calls serve_cpus() for this buffer nowhere else.
  void start(const BufferView& view);
  void stop();

 private:
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace arctrace::recorder
