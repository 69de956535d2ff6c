#include "reader/replay/kernel_frames.hpp"

#include "src/base/untrusted_bytes.hpp"

namespace arctrace::reader {
namespace {

// The kernel waits for few locks at a time; deeper nesting is not a kernel's.
constexpr size_t kDepthMax = 16;

}  // namespace

KernelFrames::KernelFrames(FrameStack& frames, ReplayState& state)
    : frames_(frames), state_(state) {}

void KernelFrames::apply(const Record& record, uint16_t flags) {
  switch (record.type) {
    case ARCTRACE_TYPE_SYSCALL:
      leave_all(true);
      open_.push_back({true, 0});
      frames_.push_kernel(
          0,
          state_.kernel_functions.syscall(
              load_part_untrusted<arctrace_syscall_body>(record.body).number),
          flags);
      break;
    case ARCTRACE_TYPE_SYSCALL_END:
      end(true, 0);
      break;
    case ARCTRACE_TYPE_PAGE_FAULT:
      count(state_.kernel_functions.page_fault());
      break;
    case ARCTRACE_TYPE_SIGNAL:
      leave_all(true);
      count(state_.kernel_functions.signal(
          load_part_untrusted<arctrace_signal_body>(record.body).signal));
      break;
    case ARCTRACE_TYPE_CONTENTION: {
      const uint64_t lock =
          load_part_untrusted<arctrace_contention_body>(record.body).lock;
      // The same wait goes on in another way.
      if (!open_.empty() && !open_.back().is_syscall && open_.back().lock == lock) break;
      if (open_.size() == kDepthMax) break;
      open_.push_back({false, lock});
      frames_.push_kernel(lock, state_.kernel_functions.contention(), flags);
      break;
    }
    case ARCTRACE_TYPE_CONTENTION_END:
      end(false, load_part_untrusted<arctrace_contention_end_body>(record.body).lock);
      break;
    default:
      break;
  }
}

void KernelFrames::leave_all(bool lost) { leave(open_.size(), lost); }

// Searches first, so that an end that fits no frame changes nothing.
void KernelFrames::end(bool is_syscall, uint64_t lock) {
  for (size_t i = open_.size(); i-- > 0;) {
    if (open_[i].is_syscall != is_syscall || open_[i].lock != lock) continue;
    leave(open_.size() - i - 1, true);
    leave(1, false);
    return;
  }
}

void KernelFrames::leave(size_t count, bool lost) {
  if (lost) (frames_.in_range() ? state_.totals : state_.outside).exit_lost += count;
  open_.resize(open_.size() - count);
  frames_.leave_kernel(static_cast<uint32_t>(count), lost ? kFrameExitLost : 0);
}

void KernelFrames::count(FunctionId function) {
  frames_.push_kernel(0, function, 0);
  frames_.leave_kernel(1, 0);
}

}  // namespace arctrace::reader
