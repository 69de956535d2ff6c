#include "reader/export/whole_calls.hpp"

#include <arctrace/format.h>

#include <algorithm>
#include <utility>

namespace arctrace::reader {

uint64_t WholeCalls::frame_opened(const FrameInfo& frame) {
  sink_.call_began(frame);
  return ++last_token_;
}

void WholeCalls::frame_closed(const FrameInfo& frame, uint64_t token, bool shown) {
  WholeCall call;
  call.frame = frame;
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
  // They come innermost first.
  std::reverse(open_.begin(), open_.end());
  std::stable_sort(open_.begin(), open_.end(), [](const auto& a, const auto& b) {
    return a.frame.start_ns < b.frame.start_ns;
  });
  for (const WholeCall& call : open_) sink_.call(call);
  open_.clear();
}

}  // namespace arctrace::reader
