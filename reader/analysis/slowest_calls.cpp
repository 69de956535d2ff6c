#include "reader/analysis/slowest_calls.hpp"

#include <arctrace/format.h>

#include <algorithm>

namespace arctrace::reader {

bool SlowestCalls::is_slower(const Ranked& a, const Ranked& b) {
  return a.time_ns != b.time_ns ? a.time_ns > b.time_ns : a.number < b.number;
}

bool SlowestCalls::wants(FunctionId function) {
  if (function >= wanted_.size()) wanted_.resize(function + 1, -1);
  int8_t& wanted = wanted_[function];
  if (wanted < 0) wanted = wants_(function) ? 1 : 0;
  return wanted != 0;
}

uint64_t SlowestCalls::frame_opened(const FrameInfo& frame) {
  std::vector<FunctionId>& stack = stacks_[{frame.thread, frame.coroutine}];
  stack.resize(frame.depth - 1);
  stack.push_back(frame.function);
  return wants(frame.function) ? next_token_++ : 0;
}

void SlowestCalls::frame_closed(const FrameInfo& frame, uint64_t token, bool shown) {
  if (token == 0) return;
  Texts texts;
  if (const auto found = open_.find(token); found != open_.end()) {
    texts = std::move(found->second);
    open_.erase(found);
  }
  if (!shown || !is_call(frame.flags)) return;
  const std::vector<FunctionId>& stack = stacks_[{frame.thread, frame.coroutine}];
  offer(frame, std::move(texts),
        {stack.begin(),
         stack.begin() + std::min<std::ptrdiff_t>(
                             frame.depth, static_cast<std::ptrdiff_t>(stack.size()))});
}

void SlowestCalls::frame_adopted(const FrameInfo& frame) {
  if (wants(frame.function)) offer(frame, {}, {frame.function});
}

void SlowestCalls::args(const ArgsInfo& args) {
  if (args.token == 0) return;
  Texts& texts = open_[args.token];
  const bool is_retval = args.record->type == ARCTRACE_TYPE_RESULT;
  std::string& text = is_retval ? texts.retval : texts.args;
  if (text.empty()) text = describe_(*args.record);
}

void SlowestCalls::offer(const FrameInfo& frame, Texts texts,
                         std::vector<FunctionId> path) {
  Ranked ranked{
      sort_ == SortKey::kSelf ? frame.self_ns : frame.duration_ns, count_++, {}};
  if (slowest_.size() >= limit_) {
    if (slowest_.empty() || !is_slower(ranked, slowest_.front())) return;
    std::pop_heap(slowest_.begin(), slowest_.end(), is_slower);
    slowest_.pop_back();
  }
  ranked.call = {frame, std::move(texts.args), std::move(texts.retval), std::move(path)};
  slowest_.push_back(std::move(ranked));
  std::push_heap(slowest_.begin(), slowest_.end(), is_slower);
}

std::vector<SlowCall> SlowestCalls::take() {
  std::sort_heap(slowest_.begin(), slowest_.end(), is_slower);
  std::vector<SlowCall> calls;
  calls.reserve(slowest_.size());
  for (Ranked& ranked : slowest_) calls.push_back(std::move(ranked.call));
  slowest_.clear();
  return calls;
}

}  // namespace arctrace::reader
