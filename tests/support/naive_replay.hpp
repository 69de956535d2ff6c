// A second replay, slow and simple: it saves every call, and adds up what is asked for
// over all of them. It shares no code with reader/replay.
#pragma once

#include <arctrace/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "reader/trace/record.hpp"

namespace arctrace::testing {

// One thread's calls.
class NaiveThread {
 public:
  struct Call {
    std::string name;
    uint64_t key = 0;
    int parent = 0;  // index; -1 of the thread itself
    int64_t start_ns = 0, stop_ns = 0;
    // The times that were charged to it: (from, to).
    std::vector<std::pair<int64_t, int64_t>> base;
    bool open = true, kept = false, adopted = false;
  };

  struct Filter {
    std::function<bool(const std::string&)> only, except;  // may be empty
    uint32_t max_depth = UINT32_MAX;
    int64_t from_ns = INT64_MIN, until_ns = INT64_MAX;
    int64_t min_duration_ns = 0;
  };

  struct Sums {
    uint64_t calls = 0, self_ns = 0;
    bool operator==(const Sums&) const = default;
  };
  // By path: names from the outermost to the node.
  using Paths = std::map<std::vector<std::string>, Sums>;

  explicit NaiveThread(std::function<std::string(uint64_t key)> name_of)
      : name_of_(std::move(name_of)), calls(1) {
    calls[0].parent = -1;
  }

  void apply(const reader::Record& record) {
    if (!started_) {
      started_ = true;
      now_ = record.time_ns;
      calls[0].start_ns = now_;
    }
    if (record.time_ns > now_) {
      calls[static_cast<size_t>(top())].base.emplace_back(now_, record.time_ns);
      now_ = record.time_ns;
    }
    switch (record.type) {
      case ARCTRACE_TYPE_ENTER:
        push(word(record, 0, 8), 0);
        break;
      case ARCTRACE_TYPE_EXIT:
        if (stack_.empty()) ++orphans;
        pop();
        break;
      case ARCTRACE_TYPE_EXIT_NAMED:
        exit_named(word(record, 0, 8));
        break;
      case ARCTRACE_TYPE_UNWIND:
        for (uint64_t n = word(record, 0, 4); n > 0 && !stack_.empty(); --n) pop();
        break;
      case ARCTRACE_TYPE_VFORK_BEGIN:
        vforks_.push_back(stack_);
        for (const int call : stack_) calls[static_cast<size_t>(call)].kept = true;
        break;
      case ARCTRACE_TYPE_VFORK_END:
        vfork_end();
        break;
      case ARCTRACE_TYPE_STACK:
        stack(record);
        break;
      case ARCTRACE_TYPE_LOST:
        broken_ = true;
        break;
      default:
        break;
    }
  }

  // Ends the thread; open calls last until the end of the recording.
  void finish(int64_t end_ns) {
    if (end_ns > now_) {
      calls[static_cast<size_t>(top())].base.emplace_back(now_, end_ns);
      now_ = end_ns;
    }
    for (const int call : stack_) calls[static_cast<size_t>(call)].stop_ns = now_;
    calls[0].stop_ns = now_;
  }

  Paths sums(const Filter& filter) const {
    Paths paths;
    for (size_t i = 0; i < calls.size(); ++i) {
      std::vector<std::string> path;
      const bool self = shown_path(static_cast<int>(i), filter, path);
      Sums& sums = paths[path];
      if (self && i > 0) ++sums.calls;
      for (const auto& [from, to] : calls[i].base) {
        const int64_t start = std::clamp(from, filter.from_ns, filter.until_ns);
        const int64_t stop = std::clamp(to, filter.from_ns, filter.until_ns);
        sums.self_ns += static_cast<uint64_t>(stop - start);
      }
    }
    return paths;
  }

 private:
  static uint64_t word(const reader::Record& record, size_t offset, size_t size) {
    uint64_t value = 0;
    std::memcpy(&value, record.body.data() + offset, size);
    return value;
  }

  int top() const { return stack_.empty() ? 0 : stack_.back(); }

  // The names of the shown frames around a call, and its own if it is shown.
  bool shown_path(int index, const Filter& filter, std::vector<std::string>& path) const {
    std::vector<int> around;
    for (int at = index; at > 0; at = calls[static_cast<size_t>(at)].parent) {
      around.push_back(at);
    }
    bool only = !filter.only;
    bool except = false;
    bool shown = false;
    for (auto at = around.rbegin(); at != around.rend(); ++at) {
      const Call& call = calls[static_cast<size_t>(*at)];
      only = only || filter.only(call.name);
      except = except || (filter.except && filter.except(call.name));
      const bool is_short = !call.open && !call.kept && !call.adopted &&

                            call.stop_ns - call.start_ns < filter.min_duration_ns;
      // A call that was entered before tracing began is known by its end only.
      const bool in_range =
          call.stop_ns >= filter.from_ns &&
          (call.adopted ? call.stop_ns : call.start_ns) < filter.until_ns;
      shown = only && !except && !is_short && in_range && path.size() < filter.max_depth;
      if (shown) path.push_back(call.name);
    }
    return shown;
  }

  void push(uint64_t key, uint64_t unknown) {
    if (unknown > 0 && top() > 0 && calls[static_cast<size_t>(top())].key == 0) {
      stack_.insert(stack_.end(), unknown, top());
      return;
    }
    Call call;
    call.key = key;
    call.name = unknown > 0 ? "[unknown]" : name_of_(key);
    call.parent = top();
    call.start_ns = now_;
    calls.push_back(call);
    const int index = static_cast<int>(calls.size() - 1);
    for (uint64_t i = 0; i < std::max<uint64_t>(unknown, 1); ++i) stack_.push_back(index);
    if (stack_.size() > ARCTRACE_OPEN_FRAMES_MAX) all_recorded_ = false;
  }

  void pop() {
    if (stack_.empty()) return;
    const int left = stack_.back();
    stack_.pop_back();
    if (!stack_.empty() && stack_.back() == left) return;
    Call& call = calls[static_cast<size_t>(left)];
    call.stop_ns = now_;
    call.open = false;
  }

  void exit_named(uint64_t key) {
    if (stack_.empty() && vforks_.empty()) {
      adopt(key);
      return;
    }
    const auto is_it = [&](int call) {
      return calls[static_cast<size_t>(call)].name != "[unknown]" &&
             calls[static_cast<size_t>(call)].key == key;
    };
    if (!broken_ && stack_.size() > ARCTRACE_OPEN_FRAMES_MAX) {
      pop();
      return;
    }
    // A writer whose stack is known to the last frame has searched for the key itself.
    const bool is_top = !stack_.empty() && is_it(stack_.back());
    const bool looked = !broken_ && all_recorded_ && !is_top;
    if (looked || std::none_of(stack_.begin(), stack_.end(), is_it)) {
      ++orphans;
      return;
    }
    while (!is_it(stack_.back())) pop();
    pop();
  }

  void adopt(uint64_t key) {
    Call call;
    call.name = name_of_(key);
    call.key = key;
    call.start_ns = calls[0].start_ns;
    call.stop_ns = now_;
    call.adopted = true;
    call.open = false;
    call.base.swap(calls[0].base);
    const int index = static_cast<int>(calls.size());
    for (Call& other : calls) {
      if (other.parent == 0) other.parent = index;
    }
    calls.push_back(call);
  }

  void vfork_end() {
    if (vforks_.empty()) {
      broken_ = true;
      return;
    }
    const std::vector<int> before = vforks_.back();
    vforks_.pop_back();
    size_t same = 0;
    while (same < stack_.size() && same < before.size() && stack_[same] == before[same]) {
      ++same;
    }
    while (stack_.size() > same) pop();
    for (; same < before.size(); ++same) {
      Call& call = calls[static_cast<size_t>(before[same])];
      call.open = true;
      stack_.push_back(before[same]);
    }
  }

  void stack(const reader::Record& record) {
    const uint64_t depth = word(record, 0, 4);
    const uint64_t recorded = word(record, 4, 4);
    const uint64_t floor = depth - recorded;
    uint64_t right = std::min<uint64_t>(stack_.size(), floor);
    while (right >= floor && right < stack_.size() && right < depth) {
      const Call& call = calls[static_cast<size_t>(stack_[right])];
      if (call.name == "[unknown]") break;
      if (call.key != word(record, 8 + 8 * (right - floor), 8)) break;
      ++right;
    }
    if (broken_ && (right < stack_.size() || right < depth)) vforks_.clear();
    const bool is_known = !broken_ && right == stack_.size() && right == depth;
    broken_ = false;
    all_recorded_ = (recorded == depth && depth <= ARCTRACE_OPEN_FRAMES_MAX) ||
                    (all_recorded_ && is_known);
    while (stack_.size() > right) pop();
    if (stack_.size() < floor) push(0, floor - stack_.size());
    while (stack_.size() < depth) {
      push(word(record, 8 + 8 * (stack_.size() - floor), 8), 0);
    }
  }

  std::function<std::string(uint64_t)> name_of_;
  bool started_ = false;
  bool broken_ = true;
  bool all_recorded_ = false;
  int64_t now_ = 0;
  std::vector<int> stack_;  // indices of calls; one that stands for n frames n times
  std::vector<std::vector<int>> vforks_;

 public:
  std::vector<Call> calls;  // [0]: the thread itself
  uint64_t orphans = 0;
};

}  // namespace arctrace::testing
