#include "reader/live/live_stacks.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "reader/trace/record_types.hpp"
#include "src/base/untrusted_bytes.hpp"

namespace arctrace::reader {
namespace {

template <class Part>
void append_part(std::vector<std::byte>& bytes, const Part& part) {
  const auto raw = std::as_bytes(std::span(&part, 1));
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

// Returns the part of a STACK or COROUTINE record that names frames.
std::span<const std::byte> frames_part(const Record& record) {
  return record.type == ARCTRACE_TYPE_COROUTINE
             ? record.body.subspan(offsetof(arctrace_coroutine_body, depth))
             : record.body;
}

std::vector<uint64_t> keys_untrusted(const Record& record) {
  std::vector<uint64_t> keys;
  if (record.type == ARCTRACE_TYPE_ENTER) {
    keys.push_back(load_part_untrusted<arctrace_frame_body>(record.body).key);
  } else if (record.type == ARCTRACE_TYPE_STACK ||
             record.type == ARCTRACE_TYPE_COROUTINE) {
    std::span<const std::byte> rest = frames_part(record);
    const auto stack = load_part_untrusted<arctrace_stack_body>(rest);
    rest = rest.subspan(sizeof stack);
    for (uint32_t i = 0; i < stack.count && rest.size() >= sizeof(uint64_t); ++i) {
      keys.push_back(load_part_untrusted<uint64_t>(rest));
      rest = rest.subspan(sizeof(uint64_t));
    }
  }
  return keys;
}

}  // namespace

std::vector<std::byte> OpenStack::record_body() const {
  uint32_t depth = 0;
  std::vector<uint64_t> keys;
  for (const OpenFrame& frame : frames) {
    if (frame.is_kernels || frame.is_inherited) continue;
    depth += frame.count;
    if (frame.key == 0 || frame.count != 1) {
      keys.clear();
    } else {
      keys.push_back(frame.key);
    }
  }
  std::vector<std::byte> body;
  append_part(body, arctrace_stack_body{.depth = depth,
                                        .count = static_cast<uint32_t>(keys.size())});
  for (const uint64_t key : keys) append_part(body, key);
  if (coroutine != 0) append_part(body, coroutine);
  return body;
}

std::vector<std::pair<uint16_t, std::vector<std::byte>>> OpenStack::kernel_records()
    const {
  std::vector<std::pair<uint16_t, std::vector<std::byte>>> records;
  for (const OpenFrame& frame : frames) {
    if (!frame.is_kernels) continue;
    std::vector<std::byte> body;
    if (frame.kernel_type == ARCTRACE_TYPE_SYSCALL) {
      arctrace_syscall_body syscall{};
      syscall.number = static_cast<uint32_t>(frame.kernel_value);
      append_part(body, syscall);
    } else if (frame.kernel_type == ARCTRACE_TYPE_CONTENTION) {
      arctrace_contention_body contention{};
      contention.lock = frame.kernel_value;
      append_part(body, contention);
    } else {
      continue;
    }
    records.emplace_back(frame.kernel_type, std::move(body));
  }
  return records;
}

void LiveStacks::before(Replay& replay, const Record& record, bool is_carried) {
  replay_ = &replay;
  is_carried_ = is_carried;
  is_kernels_ = class_of(record.type) == RecordClass::kKernel;
  kernel_type_ = is_kernels_ ? record.type : uint16_t{0};
  kernel_value_ = 0;
  if (record.type == ARCTRACE_TYPE_SYSCALL) {
    kernel_value_ = load_part_untrusted<arctrace_syscall_body>(record.body).number;
  } else if (record.type == ARCTRACE_TYPE_CONTENTION) {
    kernel_value_ = load_part_untrusted<arctrace_contention_body>(record.body).lock;
  }
  keys_ = keys_untrusted(record);
  next_key_ = 0;
}

// Returns the first of the record's keys that is this function's and was not used yet.
uint64_t LiveStacks::key_of(const FrameInfo& frame) {
  if (is_kernels_ || replay_ == nullptr) return 0;
  const Definitions& definitions = replay_->definitions();
  const Thread* thread = definitions.thread(frame.thread);
  const ProcessIndex process = thread == nullptr ? kNoIndex : thread->process;
  for (size_t i = next_key_; i < keys_.size(); ++i) {
    if (replay_->resolver().resolve(process, keys_[i], frame.time_ns) != frame.function) {
      continue;
    }
    next_key_ = i + 1;
    return keys_[i];
  }
  return 0;
}

// Returns the stack that the frame is on, which becomes its thread's current one.
std::vector<OpenFrame>& LiveStacks::frames_of(const FrameInfo& frame) {
  OpenStack& stack = stacks_[frame.thread];
  if (stack.coroutine != frame.coroutine) {
    auto& suspended = suspended_[frame.thread];
    suspended[stack.coroutine] = std::move(stack.frames);
    stack.frames = std::move(suspended[frame.coroutine]);
    stack.coroutine = frame.coroutine;
  }
  return stack.frames;
}

uint64_t LiveStacks::frame_opened(const FrameInfo& frame) {
  std::vector<OpenFrame>& frames = frames_of(frame);
  frames.resize(std::max<uint32_t>(frame.depth, 1) - 1);
  OpenFrame open;
  open.function = frame.function;
  open.key = frame.count == 1 ? key_of(frame) : 0;
  open.start_ns = frame.start_ns;
  open.count = frame.count;
  open.is_kernels = is_kernels_;
  open.kernel_type = kernel_type_;
  open.kernel_value = kernel_value_;
  open.is_inherited = !is_carried_ && (frame.flags & kFrameInherited) != 0;
  frames.push_back(open);
  return next_ == nullptr ? 0 : next_->frame_opened(frame);
}

void LiveStacks::frame_closed(const FrameInfo& frame, uint64_t token, bool shown) {
  std::vector<OpenFrame>& frames = frames_of(frame);
  if (frame.depth != 0 && frames.size() >= frame.depth) frames.resize(frame.depth - 1);
  if (next_ != nullptr) next_->frame_closed(frame, token, shown);
}

void LiveStacks::frame_adopted(const FrameInfo& frame) {
  if (next_ != nullptr) next_->frame_adopted(frame);
}

void LiveStacks::point(const PointInfo& point) {
  if (next_ != nullptr) next_->point(point);
}

void LiveStacks::args(const ArgsInfo& args) {
  if (next_ != nullptr) next_->args(args);
}

}  // namespace arctrace::reader
