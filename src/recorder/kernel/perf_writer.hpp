// Writes the kernel's records where BPF programs can't be loaded: the recorder polls it,
// and it copies perf's events of the command and its descendants into the CPUs' blocks,
// as the BPF programs would.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/buffer/buffer_view.hpp"
#include "src/protocol/shared_chain.hpp"
#include "src/recorder/drain/polled_writer.hpp"
#include "src/recorder/kernel/perf_record.hpp"
#include "src/recorder/kernel/perf_ring.hpp"

namespace arctrace {

class PerfWriter : public PolledWriter {
 public:
  // REQUIRES: the buffer has a slot for each CPU, and ARCTRACE_FEATURE_PERF.
  PerfWriter(const BufferView& view, std::vector<PerfRing> rings);

  void poll() override;
  void finish() override;

 private:
  struct Source {
    PerfRing ring;
    uint64_t lost_counted = 0;  // how many of the ring's losses the buffer counts already
    // control.freed when all blocks were taken; nullopt: a block was found since.
    std::optional<uint64_t> full_at = std::nullopt;
  };

  void copy(Source& source, bool is_on);
  void write(Source& source, const PerfRecord& record);
  template <class Body>
  void append(Source& source, uint16_t type, const PerfRecord& record, Body body);
  SharedReservation reserve(Source& source, uint32_t length);
  void count_losses(uint32_t cpu, uint64_t count, uint64_t since_ns);

  BufferView view_;
  std::vector<Source> sources_;
  uint64_t last_poll_ns_;
  bool is_finished_ = false;
};

}  // namespace arctrace
