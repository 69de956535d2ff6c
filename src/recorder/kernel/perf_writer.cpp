#include "src/recorder/kernel/perf_writer.hpp"

#include <arctrace/format.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <utility>

#include "src/base/shared_atomics.hpp"
#include "src/buffer/clock.hpp"
#include "src/protocol/cpu_chain.hpp"

namespace arctrace {
namespace {

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
  // Relaxed, because the gate publishes no other memory here.
  const bool is_on =
      (IpcAtomics::load_relaxed(view_.control().gate) & ARCTRACE_GATE_KERNEL) != 0;
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
      return append(source, ARCTRACE_TYPE_SWITCH_IN, record, arctrace_switch_in_body{});
    case Kind::kPreempted:
    case Kind::kBlocked: {
      arctrace_switch_body body{};
      body.prev_state = record.kind == Kind::kPreempted ? 0 : kUnknown;
      body.next_tid = body.next_tgid = kUnknown;
      return append(source, ARCTRACE_TYPE_SWITCH, record, body);
    }
    case Kind::kFork: {
      arctrace_forked_body body{};
      body.child_tid = record.child.tid;
      body.child_tgid = record.child.pid;
      return append(source, ARCTRACE_TYPE_FORKED, record, body);
    }
    case Kind::kExec: {
      arctrace_execed_body body{};
      std::memcpy(body.program, record.name.data(), sizeof body.program);
      return append(source, ARCTRACE_TYPE_EXECED, record, body);
    }
    case Kind::kExit:
      return append(source, ARCTRACE_TYPE_EXITED, record, arctrace_exited_body{});
    case Kind::kOther:
      break;
  }
}

// After all blocks were found taken, searches again only when one has been freed (WRT-2).
SharedReservation PerfWriter::reserve(Source& source, uint32_t length) {
  const uint64_t freed = IpcAtomics::load_relaxed(view_.control().freed);
  if (source.full_at == freed) return {};
  const SharedReservation got = CpuChain<IpcAtomics>::reserve(
      view_, source.ring.cpu(), length, read_ticks(view_.geometry().clock));
  source.full_at.reset();
  if (got.record == nullptr) source.full_at = freed;
  return got;
}

// Appends a record as begin_record() and end_record() of bpf/append.h do. Fills in the
// cpu and tgid of `body`.
template <class Body>
void PerfWriter::append(Source& source, uint16_t type, const PerfRecord& record,
                        Body body) {
  const uint32_t cpu = source.ring.cpu();
  constexpr auto length = static_cast<uint32_t>(ARCTRACE_FULL_HEAD_SIZE + sizeof body);
  const SharedReservation got =
      record.thread.is_known() ? reserve(source, length) : SharedReservation{};
  if (got.record == nullptr) {
    count_losses(cpu, 1, record.time_ns);
    return;
  }
  const uint32_t word0 = ARCTRACE_WORD0(type, length);
  IpcAtomics::store_relaxed(word_at(got.record), word0 | ARCTRACE_IN_PROGRESS);  // H1
  std::atomic_signal_fence(std::memory_order_seq_cst);
  auto* head = reinterpret_cast<arctrace_full_head*>(got.record);
  head->writer = ARCTRACE_WRITER_KERNEL | record.thread.tid;
  head->ticks = record.time_ns;
  body.cpu = cpu;
  body.tgid = record.thread.pid;
  std::memcpy(got.record + sizeof *head, &body, sizeof body);
  IpcAtomics::store_release(word_at(got.record), word0);  // I1
  CpuChain<IpcAtomics>::release(view_, cpu);
}

void PerfWriter::count_losses(uint32_t cpu, uint64_t count, uint64_t since_ns) {
  if (count == 0) return;
  arctrace_cpu_slot& slot = view_.cpu_slot(cpu);
  if (IpcAtomics::load_relaxed(slot.lost) == IpcAtomics::load_relaxed(slot.reported)) {
    IpcAtomics::store_relaxed(slot.lost_since, since_ns);
  }
  IpcAtomics::fetch_add_relaxed(slot.lost, count);
}

}  // namespace arctrace
