#include "src/recorder/kernel/perf_writer.hpp"

#include <arctrace/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <utility>

#include "src/base/shared_atomics.hpp"
#include "src/buffer/clock.hpp"
#include "src/protocol/cpu_chain.hpp"

namespace arctrace {
namespace {

using A = IpcAtomics;
using Kind = PerfRecord::Kind;

constexpr uint32_t kUnknown = ARCTRACE_SWITCH_UNKNOWN;

}  // namespace

PerfWriter::PerfWriter(const BufferView& view, std::vector<PerfRing> rings)
    : view_(view), last_poll_ns_(read_monotonic_ns()) {
  sources_.reserve(rings.size());
  for (PerfRing& ring : rings) {
    if (ring.cpu() < view.geometry().cpu_count) sources_.push_back({std::move(ring)});
  }
}

void PerfWriter::poll() {
  if (is_finished_) return;
  // Relaxed: a switch, which publishes nothing.
  const bool is_on = (A::load_relaxed(view_.control().gate) & ARCTRACE_GATE_KERNEL) != 0;
  const uint64_t now_ns = read_monotonic_ns();
  for (Source& source : sources_) copy(source, is_on);
  last_poll_ns_ = now_ns;
}

void PerfWriter::finish() {
  for (Source& source : sources_) source.ring.disable();
  poll();
  is_finished_ = true;
}

void PerfWriter::copy(Source& source, bool is_on) {
  std::span<const std::byte> bytes = source.ring.take();
  const uint64_t lost = std::max(source.ring.lost(), source.lost_counted);
  if (is_on) {
    while (const auto record = next_perf_record_untrusted(bytes)) {
      write(source, *record);
    }
    count_losses(source.ring.cpu(), lost - source.lost_counted, last_poll_ns_);
  }
  source.lost_counted = lost;
}

void PerfWriter::write(Source& source, const PerfRecord& record) {
  switch (record.kind) {
    case Kind::kSwitchIn:
      return append(source, ARCTRACE_TYPE_SWITCH_IN, record, {});
    case Kind::kPreempted:
    case Kind::kBlocked: {
      const uint32_t state = record.kind == Kind::kPreempted ? 0 : kUnknown;
      return append(source, ARCTRACE_TYPE_SWITCH, record,
                    std::array{state, kUnknown, kUnknown});
    }
    case Kind::kFork:
      return append(source, ARCTRACE_TYPE_FORKED, record,
                    std::array{record.child.tid, record.child.pid});
    case Kind::kExec: {
      std::array<uint32_t, 4> name;
      std::memcpy(name.data(), record.name.data(), sizeof name);
      return append(source, ARCTRACE_TYPE_EXECED, record, name);
    }
    case Kind::kExit:
      return append(source, ARCTRACE_TYPE_EXITED, record, std::array{0u, 0u});
    case Kind::kOther:
      break;
  }
}

// Whoever found all blocks taken asks again when one has become free (WRT-2).
SharedReservation PerfWriter::reserve(Source& source, uint32_t length) {
  const uint64_t freed = A::load_relaxed(view_.control().freed);
  if (source.full_at == freed) return {};
  const SharedReservation place = CpuChain<A>::reserve(
      view_, source.ring.cpu(), length, read_ticks(view_.geometry().clock));
  source.full_at.reset();
  if (place.place == nullptr) source.full_at = freed;
  return place;
}

// As begin_record() and end_record() of bpf/append.h do it.
void PerfWriter::append(Source& source, uint16_t type, const PerfRecord& record,
                        std::span<const uint32_t> rest) {
  const uint32_t cpu = source.ring.cpu();
  constexpr uint32_t kHeadAndIds = ARCTRACE_FULL_HEAD_SIZE + 8;  // cpu, tgid
  const auto length = static_cast<uint32_t>(kHeadAndIds + rest.size_bytes());
  const SharedReservation place =
      record.thread.is_known() ? reserve(source, length) : SharedReservation{};
  if (place.place == nullptr) {
    count_losses(cpu, 1, record.time_ns);
    return;
  }
  const uint32_t word0 = ARCTRACE_WORD0(type, length);
  A::store_relaxed(word_at(place.place), word0 | ARCTRACE_IN_PROGRESS);  // H1
  std::atomic_signal_fence(std::memory_order_seq_cst);
  word_at(place.place + 4) = ARCTRACE_WRITER_KERNEL | record.thread.tid;
  std::memcpy(place.place + 8, &record.time_ns, sizeof record.time_ns);
  word_at(place.place + 16) = cpu;
  word_at(place.place + 20) = record.thread.pid;
  const std::span<const std::byte> bytes = std::as_bytes(rest);
  std::copy(bytes.begin(), bytes.end(), place.place + kHeadAndIds);
  A::store_release(word_at(place.place), word0);  // I1
  CpuChain<A>::release(view_, cpu);
}

void PerfWriter::count_losses(uint32_t cpu, uint64_t count, uint64_t since_ns) {
  if (count == 0) return;
  arctrace_cpu_slot& slot = view_.cpu_slot(cpu);
  if (A::load_relaxed(slot.lost) == A::load_relaxed(slot.reported)) {
    A::store_relaxed(slot.lost_since, since_ns);
  }
  A::fetch_add_relaxed(slot.lost, count);
}

}  // namespace arctrace
