// Random records of several threads, from a seed: calls mostly valid, with faults of
// every kind among them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/support/record_script.hpp"
#include "tests/support/seed.hpp"

namespace arctrace::testing {

class RandomScript {
 public:
  struct Shape {
    size_t records = 300;
    bool exit_named = true;  // also on an empty stack
    bool vfork = true;
    // Names of the process' functions; the last one is never entered.
    std::vector<std::string> names = {"f0", "f1", "f2", "f3", "f4", "f5", "f6"};
  };

  RandomScript(uint64_t seed, const Shape& shape) : shape_(shape), rng_(seed) {
    const size_t processes = 1 + below(3);
    for (size_t p = 0; p < processes; ++p) {
      const auto pid = static_cast<uint32_t>(100 + 10 * p);
      const reader::ProcessIndex process = script.process(pid, "/bin/p");
      const size_t threads = 1 + below(2);
      for (size_t t = 0; t < threads; ++t) {
        threads_.push_back(
            {script.thread(process, pid + static_cast<uint32_t>(t)), {}, {}});
      }
    }
    for (size_t i = 0; i < 6; ++i) script.name_id(name(i));
    int64_t now = static_cast<int64_t>(below(50));
    for (size_t i = 0; i < shape.records; ++i) {
      now += static_cast<int64_t>(below(20));
      step(threads_[below(threads_.size())], now);
    }
    last_ns = now;
  }

  RecordScript script;
  int64_t last_ns = 0;

 private:
  struct State {
    reader::ThreadIndex thread;
    std::vector<std::string> stack;  // the frames that the writer knows
    std::vector<std::vector<std::string>> vforks;
  };

  const std::string& name(size_t i) const { return shape_.names[i]; }
  uint64_t below(uint64_t bound) { return rng_() % bound; }

  void enter(State& state, int64_t now) {
    const std::string called = name(below(6));
    script.enter(state.thread, now, called);
    state.stack.push_back(called);
  }

  void step(State& state, int64_t now) {
    const uint64_t dice = below(100);
    std::vector<std::string>& stack = state.stack;
    if (dice < 45) {
      enter(state, now);
    } else if (dice < 75) {
      if (stack.empty() && below(10) != 0) return;
      script.exit(state.thread, now);
      if (!stack.empty()) stack.pop_back();
    } else if (dice < 79) {
      if (!shape_.exit_named) return;
      const std::string left = name(below(7));
      script.exit_named(state.thread, now, left);
      const auto found = std::find(stack.rbegin(), stack.rend(), left);
      if (found != stack.rend()) stack.erase(found.base() - 1, stack.end());
    } else if (dice < 82) {
      const uint64_t count = std::min<uint64_t>(below(4), stack.size() + below(2));
      script.unwind(state.thread, now, static_cast<uint32_t>(count));
      stack.resize(stack.size() - std::min<uint64_t>(count, stack.size()));
    } else if (dice < 85) {
      if (!shape_.vfork) return;
      script.vfork_begin(state.thread, now);
      state.vforks.push_back(stack);
    } else if (dice < 88) {
      if (state.vforks.empty()) return;
      script.vfork_end(state.thread, now, 1);
      stack = state.vforks.back();
      state.vforks.pop_back();
    } else if (dice < 92) {
      record_stack(state, now);
    } else if (dice < 95) {
      lose(state, now);
    } else {
      script.text(state.thread, now, "text");
    }
  }

  // Records the frames that the writer knows, all or the innermost; now and then wrong
  // ones.
  void record_stack(State& state, int64_t now) {
    if (below(8) == 0) state.stack.resize(state.stack.size() / 2);
    if (below(8) == 0) state.stack.push_back(name(below(6)));
    const size_t recorded =
        below(2) == 0 ? state.stack.size() : below(state.stack.size() + 1);
    const std::vector<std::string> names(
        state.stack.end() - static_cast<std::ptrdiff_t>(recorded), state.stack.end());
    script.stack(state.thread, now, names, static_cast<uint32_t>(state.stack.size()));
  }

  // Makes calls without a record; a STACK may follow, or come late.
  void lose(State& state, int64_t now) {
    script.lost(state.thread, now, 1 + below(9));
    state.vforks.clear();
    for (uint64_t i = below(6); i > 0; --i) {
      if (below(2) == 0) {
        state.stack.push_back(name(below(6)));
      } else if (!state.stack.empty()) {
        state.stack.pop_back();
      }
    }
    if (below(4) != 0) record_stack(state, now);
  }

  const Shape shape_;
  std::mt19937_64 rng_;
  std::vector<State> threads_;
};

}  // namespace arctrace::testing
