#include "reader/export/whole_calls.hpp"

#include <arctrace/format.h>

#include <algorithm>
#include <utility>

namespace arctrace::reader {

WholeCalls::Stack& WholeCalls::stack_of(const FrameInfo& frame) {
  if (frame.coroutine != 0) return coroutines_[{frame.thread, frame.coroutine}];
  if (frame.thread >= stacks_.size()) stacks_.resize(frame.thread + size_t{1});
  return stacks_[frame.thread];
}

// A frame's depth counts the shown frames up to it, which are those on its stack here.
uint64_t WholeCalls::begin(const FrameInfo& frame) {
  Stack& stack = stack_of(frame);
  stack.resize(frame.depth - 1);
  stack.push_back({++last_token_, frame.start_ns});
  return last_token_;
}

void WholeCalls::end(const FrameInfo& frame, WholeCall& call) {
  Stack& stack = stack_of(frame);
  if (stack.size() >= frame.depth && frame.depth > 1) {
    const Open& caller = stack[frame.depth - 2];
    if (caller.start_ns == frame.start_ns) call.began_with = caller.token;
  }
  stack.resize(std::min<size_t>(stack.size(), frame.depth - 1));
  // Coroutines may come one after another without end, so their stacks are dropped.
  if (frame.coroutine != 0 && stack.empty()) {
    coroutines_.erase({frame.thread, frame.coroutine});
  }
}

uint64_t WholeCalls::frame_opened(const FrameInfo& frame) {
  sink_.call_began(frame);
  return begin(frame);
}

void WholeCalls::frame_closed(const FrameInfo& frame, uint64_t token, bool shown) {
  WholeCall call;
  call.frame = frame;
  call.token = token;
  end(frame, call);
  if (!contents_.empty()) {
    if (const auto found = contents_.find(token); found != contents_.end()) {
      call.args = std::move(found->second.args);
      call.retval = std::move(found->second.retval);
      contents_.erase(found);
    }
  }
  if (shown) add(call);
}

void WholeCalls::frame_adopted(const FrameInfo& frame) {
  WholeCall call;
  call.frame = frame;
  call.is_adopted = true;
  add(call);
}

void WholeCalls::add(WholeCall& call) {
  call.has_ended = (call.frame.flags & (kFrameOpen | kFrameCutStop)) == 0;
  if (call.has_ended) {
    sink_.call(call);
  } else {
    open_.push_back(std::move(call));
  }
}

void WholeCalls::args(const ArgsInfo& args) {
  Content& content = contents_[args.token];
  std::string& text =
      args.record->type == ARCTRACE_TYPE_RESULT ? content.retval : content.args;
  if (text.empty()) text = sink_.describe(*args.record);
}

void WholeCalls::finish() {
  // Open calls come innermost first.
  std::reverse(open_.begin(), open_.end());
  std::stable_sort(open_.begin(), open_.end(), [](const auto& a, const auto& b) {
    return a.frame.start_ns < b.frame.start_ns;
  });
  for (const WholeCall& call : open_) sink_.call(call);
  open_.clear();
}

}  // namespace arctrace::reader
