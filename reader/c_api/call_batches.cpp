#include "reader/c_api/call_batches.hpp"

#include <arctrace/format.h>

#include <algorithm>

namespace arctrace::reader {
namespace {

// Small enough for a CPU's cache, large enough that the queue costs nothing.
constexpr size_t kCallsInBatch = 2048;

static_assert(int{ARCTRACE_READER_UNWOUND} == int{kFrameUnwound} &&
              int{ARCTRACE_READER_EXIT_LOST} == int{kFrameExitLost} &&
              int{ARCTRACE_READER_ENTRY_LOST} == int{kFrameEntryLost} &&
              int{ARCTRACE_READER_ENTERED_BEFORE} == int{kFrameEnteredBefore} &&
              int{ARCTRACE_READER_INHERITED} == int{kFrameInherited} &&
              int{ARCTRACE_READER_NOT_ENDED} == int{kFrameOpen} &&
              int{ARCTRACE_READER_RESUMED} == int{kFrameResumed} &&
              int{ARCTRACE_READER_BEGAN_BEFORE} == int{kFrameCutStart} &&
              int{ARCTRACE_READER_ENDED_AFTER} == int{kFrameCutStop} &&
              int{ARCTRACE_READER_GUESSED} == int{kFrameGuessed} &&
              int{ARCTRACE_READER_ACROSS_GAP} == int{kFrameAcrossGap} &&
              int{ARCTRACE_READER_COUNTED_ELSEWHERE} == int{kFrameCountedElsewhere});

}  // namespace

CallBatches::CallBatches(Describe describe, Put put)
    : describe_(std::move(describe)),
      put_(std::move(put)),
      root_(paths_.add_root()),
      paths_put_(paths_.size()) {
  batch_.calls.reserve(kCallsInBatch);
}

CallBatches::Stack& CallBatches::stack_of(const FrameInfo& frame) {
  if (frame.coroutine != 0) return coroutines_[{frame.thread, frame.coroutine}];
  if (frame.thread >= stacks_.size()) stacks_.resize(frame.thread + size_t{1});
  return stacks_[frame.thread];
}

// A frame's depth counts the shown frames up to it, which are those on its stack here.
uint64_t CallBatches::frame_opened(const FrameInfo& frame) {
  Stack& stack = stack_of(frame);
  stack.resize(frame.depth - 1, root_);
  const NodeIndex path =
      paths_.child(stack.empty() ? root_ : stack.back(), frame.function);
  stack.push_back(path);
  return uint64_t{++last_number_} << 32 | path;
}

arctrace_reader_call CallBatches::made(const FrameInfo& frame, NodeIndex path) {
  arctrace_reader_call call;
  call.size = sizeof call;
  call.flags = frame.flags;
  call.thread = frame.thread;
  call.function = frame.function;
  call.path = path - root_ - 1;
  call.depth = frame.depth;
  call.coroutine = frame.coroutine;
  call.count = frame.count;
  call.start_ns = frame.start_ns;
  call.end_ns = frame.stop_ns;
  call.duration_ns = frame.duration_ns;
  call.self_ns = frame.self_ns;
  call.off_cpu_ns = frame.cpu.off_ns;
  call.not_known_ns = frame.cpu.unknown_ns;
  call.args = call.retval = "";
  return call;
}

const char* CallBatches::keep(std::string text) {
  return text.empty() ? "" : batch_.texts.emplace_back(std::move(text)).c_str();
}

void CallBatches::frame_closed(const FrameInfo& frame, uint64_t token, bool shown) {
  Stack& stack = stack_of(frame);
  stack.resize(std::min<size_t>(stack.size(), frame.depth - 1));
  // Coroutines may come one after another without end, so their stacks are dropped.
  if (frame.coroutine != 0 && stack.empty()) {
    coroutines_.erase({frame.thread, frame.coroutine});
  }
  Values values;
  if (!values_.empty()) {
    if (const auto found = values_.find(token); found != values_.end()) {
      values = std::move(found->second);
      values_.erase(found);
    }
  }
  if (!shown) return;
  arctrace_reader_call call = made(frame, static_cast<NodeIndex>(token));
  if ((frame.flags & (kFrameOpen | kFrameCutStop)) != 0) {
    not_ended_.push_back({call, std::move(values)});
    return;
  }
  call.args = keep(std::move(values.args));
  call.retval = keep(std::move(values.retval));
  add(call);
}

void CallBatches::frame_adopted(const FrameInfo& frame) {
  add(made(frame, paths_.child(root_, frame.function)));
}

void CallBatches::args(const ArgsInfo& args) {
  if (!describe_) return;
  Values& values = values_[args.token];
  if (args.record->type != ARCTRACE_TYPE_RESULT) {
    if (values.args.empty()) values.args = describe_(*args.record);
    return;
  }
  if (!values.retval.empty()) return;
  values.retval = describe_(*args.record);
  if (values.retval.starts_with(" = ")) values.retval.erase(0, 3);
}

void CallBatches::add(const arctrace_reader_call& call) {
  batch_.calls.push_back(call);
  if (batch_.calls.size() >= kCallsInBatch) put();
}

void CallBatches::put() {
  for (; functions_put_ < functions_->size(); ++functions_put_) {
    const Function& function = (*functions_)[static_cast<FunctionId>(functions_put_)];
    batch_.functions.emplace_back(function.name, function.module);
  }
  for (; paths_put_ < paths_.size(); ++paths_put_) {
    const CallNode& node = paths_[static_cast<NodeIndex>(paths_put_)];
    const bool is_outermost = node.parent == root_;
    batch_.paths.emplace_back(
        is_outermost ? ARCTRACE_READER_NONE : node.parent - root_ - 1, node.function);
  }
  if (wants_more_) wants_more_ = put_(batch_);
  if (!wants_more_) batch_.clear();
}

void CallBatches::finish() {
  // Open calls come innermost first.
  std::reverse(not_ended_.begin(), not_ended_.end());
  std::stable_sort(not_ended_.begin(), not_ended_.end(),
                   [](const NotEnded& a, const NotEnded& b) {
                     return a.call.start_ns < b.call.start_ns;
                   });
  for (NotEnded& entry : not_ended_) {
    entry.call.args = keep(std::move(entry.values.args));
    entry.call.retval = keep(std::move(entry.values.retval));
    add(entry.call);
  }
  not_ended_.clear();
  put();
}

}  // namespace arctrace::reader
