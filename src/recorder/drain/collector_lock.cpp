#include "src/recorder/drain/collector_lock.hpp"

#include <unistd.h>

#include "src/base/raw_syscall.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/os/robust_lock.hpp"
#include "src/protocol/cpu_chain.hpp"
#include "src/protocol/dead_slot.hpp"
#include "src/protocol/recycle.hpp"

namespace arctrace {

CollectorLock::CollectorLock(const BufferView& view) {
  std::promise<bool> tried;
  std::future<bool> result = tried.get_future();
  // Inherited by the holder, so that signals go to the program's other threads.
  const sys::SignalsBlocked blocked;
  holder_ = std::thread([this, &view, tried = std::move(tried)]() mutable {
    arctrace_control& control = view.control();
    const uint32_t seen = IpcAtomics::load_acquire(control.collector_lock);
    const bool locked =
        !is_live(seen) &&
        robust_lock({control.collector_lock, control.collector_robust_prev,
                     control.collector_robust_next},
                    seen, static_cast<uint32_t>(gettid()));
    if (locked)
      IpcAtomics::store_relaxed(control.collector_pid, static_cast<uint32_t>(getpid()));
    std::future<void> release = release_.get_future();
    tried.set_value(locked);
    release.wait();
  });
  is_held_ = result.get();
}

CollectorLock::~CollectorLock() {
  release_.set_value();
  holder_.join();
}

void reclaim_blocks(const Buffer& buffer) {
  const BufferView& view = buffer.view();
  // Only perf's records are written by the collector itself. A BPF program may still be
  // writing, and never dies while it does.
  const bool cpus_are_collectors =
      (buffer.header().features_optional & ARCTRACE_FEATURE_PERF) != 0;
  for (uint32_t cpu = 0; cpus_are_collectors && cpu < view.geometry().cpu_count; ++cpu) {
    CpuChain<IpcAtomics>::release(view, cpu);
  }
  for (uint32_t i = 0; i < view.geometry().block_count; ++i) {
    uint64_t seen = IpcAtomics::load_acquire(view.block_header(i).state);
    const BlockState state = BlockState::unpack(seen);
    if (state.slot == ARCTRACE_KERNEL_SLOT) {
      DeadSlot<IpcAtomics>::close_left(view, view.block_header(i), seen);
    }
    if (state.phase != ARCTRACE_PHASE_DRAINING) continue;
    IpcAtomics::compare_exchange_acq_rel(view.block_header(i).state, seen,
                                         state.with(ARCTRACE_PHASE_CLOSED).pack());
  }
}

}  // namespace arctrace
