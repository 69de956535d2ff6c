// A thread that keeps blocks free for the CPUs in overwrite mode. It does nothing else,
// so that neither a snapshot that is being written nor other work keeps it from that.
#pragma once

#include <atomic>
#include <thread>

#include "src/buffer/buffer_view.hpp"

namespace arctrace {

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

}  // namespace arctrace
