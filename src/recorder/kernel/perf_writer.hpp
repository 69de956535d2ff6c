// Writes the kernel's records where BPF programs can't be loaded: the recorder polls it,
// and it copies perf's events of the command and its descendants into the CPUs' blocks,
// as the BPF programs would. Also reads perf's rings, and parses perf's records.
#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/buffer/buffer_view.hpp"
#include "src/protocol/shared_chain.hpp"
#include "src/recorder/drain/recorder.hpp"

namespace arctrace::recorder {

// A perf event of one CPU for the threads of one process tree, and the ring into which
// the kernel writes its records. PerfWriter reads the rings where BPF programs can't be
// loaded.
class PerfRing {
 public:
  // Opens an event for the processes that the calling thread forks from now on, beginning
  // with their exec, and for all that they fork. kNotFound: the CPU is not online. Other
  // errors: not permitted, or no memory.
  static absl::StatusOr<PerfRing> open(uint32_t cpu);

  PerfRing(PerfRing&& other) noexcept;
  PerfRing& operator=(PerfRing&&) = delete;
  ~PerfRing();

  uint32_t cpu() const { return cpu_; }

  // Copies the records that the kernel has written since the last call (PerfRecord) and
  // gives their space back to it. The copy is valid until the next call.
  std::span<const std::byte> take();

  // The number of records for which there was no space since the ring was opened.
  uint64_t lost() const;

  // Stops the event for all threads, for good.
  void disable();

 private:
  PerfRing(uint32_t cpu, int event) : cpu_(cpu), event_(event) {}
  absl::Status map();

  uint32_t cpu_;
  int event_;
  std::byte* base_ = nullptr;  // the ring's control page, then its data
  uint64_t ring_size_ = 0;     // bytes, a power of two
  std::vector<std::byte> taken_;
};

// Opens a ring for each CPU that is online. The text of an error is one line that names
// what is refused and why.
absl::StatusOr<std::vector<PerfRing>> open_perf_rings();

// Parses the records of perf's rings (linux/perf_event.h) that PerfRing asks for.
// PerfWriter makes records of ours from them.

// One record of perf's. The layout is that of the attributes in perf_writer.cpp: each
// record ends with u32 pid, tid; u64 time; u32 cpu, 0 (sample_id_all).
struct PerfRecord {
  enum class Kind : uint8_t {
    kSwitchIn,   // the thread got a CPU
    kPreempted,  // the thread lost its CPU, and could have run on
    kBlocked,    // the thread gave its CPU up
    kFork,       // the thread made `child`
    kExec,       // the thread executes another program, `name`
    kExit,
    kOther,  // not recorded
  };
  struct Thread {
    uint32_t pid, tid;  // in the PID namespace of the process that opened the event

    // Whether the thread is known: false if it had ended, or has no number in that
    // namespace.
    bool is_known() const {
      return tid != 0 && tid < 0x80000000u && pid != 0 && pid < 0x80000000u;
    }
  };

  Kind kind = Kind::kOther;
  Thread thread{};
  Thread child{};
  uint64_t time_ns = 0;  // CLOCK_MONOTONIC
  std::array<char, 16> name{};
};

// Takes the first record off `bytes`, a private copy. nullopt: the bytes do not begin
// with a whole record.
std::optional<PerfRecord> next_perf_record_untrusted(std::span<const std::byte>& bytes);

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
    // The value of control.freed when all blocks were taken; nullopt: a block was found
    // since.
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

}  // namespace arctrace::recorder
