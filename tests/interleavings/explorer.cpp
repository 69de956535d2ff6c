#include "tests/interleavings/explorer.hpp"

#include <algorithm>
#include <array>
#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>
#include <exception>
#include <memory>
#include <optional>

namespace arctrace::testing {
namespace {

namespace context = boost::context;

constexpr size_t kTasksMax = 16;
constexpr size_t kStackSize = size_t{64} << 10;

using TaskSet = uint32_t;  // one bit each
constexpr TaskSet only(size_t task) { return TaskSet{1} << task; }

// A task of the current execution.
class Runner {
 public:
  explicit Runner(Task task)
      : fiber_(std::allocator_arg, context::fixedsize_stack(kStackSize),
               [this, body = std::move(task)](context::fiber&& caller) {
                 caller_ = std::move(caller);
                 try {
                   body();
                 } catch (const context::detail::forced_unwind&) {
                   throw;
                 } catch (...) {
                   failure_ = std::current_exception();
                 }
                 next_.reset();
                 return std::move(caller_);
               }) {}
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // Runs the task until its next access. REQUIRES: not done() after the first call.
  void step() {
    Runner* outer = running;
    running = this;
    fiber_ = std::move(fiber_).resume();
    running = outer;
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }
  bool done() const { return !next_; }
  const Access& next() const { return *next_; }

  static void stop_before(const Access& access) {
    if (running == nullptr) return;
    running->next_ = access;
    running->caller_ = std::move(running->caller_).resume();
  }

 private:
  static inline Runner* running = nullptr;

  context::fiber fiber_;
  context::fiber caller_;
  std::optional<Access> next_;
  std::exception_ptr failure_;
};

using Clock = std::array<uint32_t, kTasksMax>;  // by task: its steps that came before

// A choice: the task that ran on from a state.
struct Step {
  size_t task = 0;
  Access access;
  Clock clock{};                        // after the step
  std::array<Access, kTasksMax> nexts;  // of the tasks that were not done
  TaskSet enabled = 0;
  TaskSet to_try = 0;  // tasks that may make a difference if they run first
  TaskSet tried = 0;
  TaskSet asleep = 0;  // tasks that ran first from an earlier state
};

size_t first_of(TaskSet tasks) {
  size_t task = 0;
  while ((tasks & only(task)) == 0) ++task;
  return task;
}

class Exploration {
 public:
  // Runs one execution: the steps that were set before, then new ones. Returns false if
  // it was pruned.
  bool run(std::vector<Task> tasks) {
    std::vector<std::unique_ptr<Runner>> runners;
    for (Task& task : tasks) {
      runners.push_back(std::make_unique<Runner>(std::move(task)));
      runners.back()->step();
    }
    clocks_.fill({});
    for (size_t depth = 0;; ++depth) {
      if (depth == steps_.size() && !extend(runners)) {
        // Either the execution is over, or all remaining tasks were explored from here:
        // let them end.
        bool over = true;
        for (size_t i = 0; i < runners.size(); ++i) {
          if (runners[i]->done()) continue;
          over = false;
          note_races(depth, i, runners[i]->next());
        }
        for (const auto& runner : runners) {
          while (!runner->done()) runner->step();
        }
        return over;
      }
      Step& step = steps_[depth];
      step.clock = note_races(depth, step.task, step.access);
      clocks_[step.task] = step.clock;
      runners[step.task]->step();
    }
  }

  // Prepares the next execution. Returns false if there is none.
  bool next() {
    while (!steps_.empty()) {
      Step& last = steps_.back();
      last.tried |= only(last.task);
      const TaskSet left = last.to_try & ~last.tried & ~last.asleep;
      if (left != 0) {
        last.task = first_of(left);
        last.access = last.nexts[last.task];
        return true;
      }
      steps_.pop_back();
    }
    return false;
  }

  size_t depth() const { return steps_.size(); }

 private:
  // Chooses a task that is neither done nor asleep.
  bool extend(const std::vector<std::unique_ptr<Runner>>& runners) {
    Step step;
    for (size_t i = 0; i < runners.size(); ++i) {
      if (runners[i]->done()) continue;
      step.enabled |= only(i);
      step.nexts[i] = runners[i]->next();
    }
    if (!steps_.empty()) {
      const Step& last = steps_.back();
      for (size_t i = 0; i < runners.size(); ++i) {
        const bool known = ((last.asleep | last.tried) & only(i)) != 0;
        if (known && i != last.task && !last.nexts[i].conflicts_with(last.access)) {
          step.asleep |= only(i);
        }
      }
    }
    const TaskSet awake = step.enabled & ~step.asleep;
    if (awake == 0) return false;
    // The task that ran last continues, so that there are few switches.
    const bool stays = !steps_.empty() && (awake & only(steps_.back().task)) != 0;
    step.task = stays ? steps_.back().task : first_of(awake);
    step.access = step.nexts[step.task];
    step.to_try = only(step.task);
    steps_.push_back(step);
    return true;
  }

  // If one of the first `depth` steps conflicts with the next one of `task` and nothing
  // orders the two, the reverse order must be tried too. Returns the clock after that
  // next step.
  Clock note_races(size_t depth, size_t task, const Access& access) {
    Clock clock = clocks_[task];
    for (size_t i = depth; i-- > 0;) {
      const Step& earlier = steps_[i];
      if (!earlier.access.conflicts_with(access)) continue;
      if (earlier.task != task && clock[earlier.task] <= i) {
        reverse(i, depth, task, access);
      }
      for (size_t t = 0; t < kTasksMax; ++t) {
        clock[t] = std::max(clock[t], earlier.clock[t]);
      }
    }
    clock[task] = static_cast<uint32_t>(depth + 1);
    return clock;
  }

  // Ensures that, in place of step i, a task is tried that can begin what came after this
  // step and does not need it, and then the next step of `task`: a source set (Abdulla et
  // al., POPL 2014).
  void reverse(size_t i, size_t depth, size_t task, const Access& access) {
    std::vector<size_t> kept;  // steps after i that don't need it
    TaskSet seen = 0;
    TaskSet initial = 0;
    const auto needs = [&](const Clock& clock, size_t step) {
      return clock[steps_[step].task] > step;
    };
    for (size_t j = i + 1; j < depth; ++j) {
      const Step& step = steps_[j];
      if (needs(step.clock, i)) continue;
      const bool begins = std::none_of(kept.begin(), kept.end(),
                                       [&](size_t k) { return needs(step.clock, k); });
      if (begins && (seen & only(step.task)) == 0) initial |= only(step.task);
      seen |= only(step.task);
      kept.push_back(j);
    }
    const bool begins = std::none_of(kept.begin(), kept.end(), [&](size_t k) {
      return needs(clocks_[task], k) || steps_[k].access.conflicts_with(access);
    });
    if (begins && (seen & only(task)) == 0) initial |= only(task);
    if ((initial & (steps_[i].to_try | steps_[i].asleep)) != 0) return;
    steps_[i].to_try |= only(first_of(initial));
  }

  std::vector<Step> steps_;
  std::array<Clock, kTasksMax> clocks_{};  // by task: what came before its next step
};

}  // namespace

Explored explore(const std::function<std::vector<Task>()>& start,
                 const std::function<void()>& check, uint64_t executions_max) {
  Explored explored;
  Exploration exploration;
  do {
    if (explored.executions == executions_max) return explored;
    if (exploration.run(start())) {
      check();
      ++explored.executions;
      explored.longest = std::max<uint64_t>(explored.longest, exploration.depth());
    } else {
      ++explored.pruned;
    }
  } while (exploration.next());
  explored.complete = true;
  return explored;
}

void before_access(const Access& access) { Runner::stop_before(access); }

}  // namespace arctrace::testing
