// Known calls between hooked functions: a modelled program, of functions with hooks and
// functions without any, calls, returns, jumps and makes tail calls. After each hook the
// writer's open frames must be the model's.
#include "src/stack/call_edges.hpp"

#include <arctrace/arctrace.h>
#include <doctest/doctest.h>

#include <functional>
#include <vector>

#include "src/api/shim_interface.h"
#include "src/process/session.hpp"
#include "src/writer/thread_state.hpp"
#include "tests/support/child.hpp"
#include "tests/support/random.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace::testing {
namespace {

constexpr uintptr_t kStackLow = 4096;
constexpr uintptr_t kStackHigh = 1 << 20;
constexpr uint32_t kFunctions = 10;
constexpr size_t kDepthMax = 40;

writer::MachineFrame frame_at(uintptr_t cfa, uint32_t hook_site, uint32_t call_site) {
  writer::MachineFrame frame(cfa);
  frame.stack_pointer = writer::low_half(cfa - 64);
  frame.hook_site = hook_site;
  frame.call_site = call_site;
  return frame;
}

TEST_CASE("call edges: a call is known by its sites, its caller's, and their distance") {
  static writer::CallEdges::SmallTable small;
  writer::CallEdges edges;
  edges.begin_use(small, nullptr);
  const writer::MachineFrame caller = frame_at(900, 1, 2);
  const writer::MachineFrame callee = frame_at(800, 3, 4);
  CHECK_FALSE(edges.has(caller, callee));
  edges.add(caller, callee, {});
  CHECK(edges.has(caller, callee));
  CHECK(edges.has(frame_at(700, 1, 77), frame_at(600, 3, 4)));  // elsewhere on the stack
  CHECK_FALSE(edges.has(frame_at(901, 1, 2), callee));
  CHECK_FALSE(edges.has(frame_at(900, 5, 2), callee));
  CHECK_FALSE(edges.has(caller, frame_at(800, 5, 4)));
  CHECK_FALSE(edges.has(caller, frame_at(800, 3, 5)));
  CHECK_FALSE(edges.has(frame_at(900 + (uint64_t{1} << 32), 1, 2), callee));
  CHECK_FALSE(edges.has(frame_at(700, 1, 2), callee));
  // A call that has the same entry in the table is not known, either.
  for (uintptr_t other = 801; other < 20000; ++other) {
    REQUIRE(edges.has(frame_at(other, 1, 2), callee) == (other == 900));
  }
}

// If they shared edges, each would evict the next one, again and again.
TEST_CASE("call edges: neighbouring calls and short functions have edges of their own") {
  constexpr uint32_t kSites = 32;
  constexpr uint32_t kShortestCall = 5;       // bytes from one call to the next
  constexpr uint32_t kShortestFunction = 16;  // bytes from one function to the next
  const writer::MachineFrame caller = frame_at(900, 1, 2);
  const auto call = [](uint32_t i) {
    return frame_at(800, 5000, 1000 + i * kShortestCall);
  };
  const auto function = [](uint32_t i) {
    return frame_at(800, 9000 + i * kShortestFunction, 1500);
  };
  const auto stub = [](uint32_t i) {
    const uint32_t site = 3000 + i * kShortestCall;
    return frame_at(800, site, site);
  };
  for (const std::function<writer::MachineFrame(uint32_t)>& made :
       {std::function<writer::MachineFrame(uint32_t)>(call), {function}, {stub}}) {
    static writer::CallEdges::SmallTable small;
    writer::CallEdges edges;
    edges.begin_use(small, nullptr);
    for (uint32_t i = 0; i < kSites; ++i) edges.add(caller, made(i), {});
    for (uint32_t i = 0; i < kSites; ++i) CHECK(edges.has(caller, made(i)));
  }
}

// Many calls of a loop, from many places.
TEST_CASE("call edges: a large table is wanted where edges take each other's places") {
  constexpr uint32_t kCalls = 1000;
  static writer::CallEdges::SmallTable small;
  static writer::CallEdges::LargeTable large;
  writer::CallEdges edges;
  edges.begin_use(small, nullptr);
  Random random(20261127);
  std::vector<writer::MachineFrame> calls;
  for (uint32_t i = 0; i < kCalls; ++i) {
    calls.push_back(frame_at(800, 1 + random.below(1 << 20), 1 + random.below(1 << 20)));
  }
  const writer::MachineFrame caller = frame_at(900, 1, 2);
  // How many of the calls are not known when they are made.
  const auto round = [&](bool& wants_more) {
    uint32_t unknown = 0;
    for (const writer::MachineFrame& callee : calls) {
      if (edges.has(caller, callee)) continue;
      ++unknown;
      wants_more |= edges.add(caller, callee, {});
    }
    return unknown;
  };
  bool wants_more = false;
  int rounds = 0;
  uint32_t unknown = 0;
  for (; !wants_more; ++rounds) {
    REQUIRE(rounds < 1000);
    unknown = round(wants_more);
  }
  CHECK(rounds > 2);  // work that a program does once does not count
  CHECK(unknown * 10 > kCalls);
  edges.begin_use(small, &large);
  wants_more = false;
  round(wants_more);
  CHECK(round(wants_more) * 4 < unknown);
  for (rounds = 0; rounds < 100; ++rounds) round(wants_more);
  CHECK_FALSE(wants_more);
  // Another thread that takes the state over has the edges.
  edges.begin_use(small, &large);
  CHECK(round(wants_more) * 4 < unknown);
}

TEST_CASE("call edges: what can't be told from no edge is none") {
  CHECK(writer::CallEdges::can_add(frame_at(900, 1, 2), frame_at(800, 3, 4)));
  CHECK(writer::CallEdges::can_add(frame_at(900, 1, 2), frame_at(900, 3, 2)));  // inlined
  CHECK_FALSE(writer::CallEdges::can_add(frame_at(700, 1, 2), frame_at(800, 3, 4)));
  CHECK_FALSE(writer::CallEdges::can_add(frame_at(900, 0, 2), frame_at(800, 3, 4)));
  CHECK_FALSE(writer::CallEdges::can_add(frame_at(900, 1, 2), frame_at(800, 0, 4)));
  CHECK_FALSE(writer::CallEdges::can_add(frame_at(900 + (uint64_t{1} << 32), 1, 2),
                                         frame_at(900, 3, 4)));
}

// The modelled program. Frames of hooked functions are small and those of others large,
// so that frames whose sizes differ never add up to the same distance.
class ModelProgram {
 public:
  explicit ModelProgram(Random& random) : random_(random) {}

  void step() {
    const uint32_t what = random_.below(20);
    if (frames_.empty() || (what < 9 && frames_.size() < kDepthMax)) {
      call(random_.below(kSites));
    } else if (what < 16) {
      exit_innermost();
    } else if (what < 18) {
      tail_call();
    } else {
      jump();
    }
  }

  // Calls each of the functions that the outermost one calls.
  void call_in_turn() {
    if (frames_.empty()) call(0);
    for (uint32_t site = 0; site < kSites; ++site) {
      call(site);
      exit_innermost();
    }
  }

  static int find_caller(arctrace_shim_call* frame, uintptr_t, uintptr_t) {
    ++steps_;
    const std::vector<Frame>& frames = current_->frames_;
    for (size_t i = frames.size(); i-- > 0;) {
      if (frames[i].cfa != frame->cfa) continue;
      size_t outer = i;
      while (outer > 0 && frames[outer - 1].cfa == frame->cfa) --outer;
      if (outer-- == 0) return 0;
      frame->hook_site = frames[i].call_site;
      frame->stack_pointer = frame->cfa;
      frame->cfa = frames[outer].cfa;
      frame->call_site = frames[outer].call_site;
      frame->flags = 0;
      return 1;
    }
    return 0;
  }
  void use() {
    current_ = this;
    arctrace_shim_set_slow_hooks(enter_slowly, exit_slowly);
  }
  static uint64_t steps() { return steps_; }

 private:
  struct Frame {
    uint32_t function;
    uint32_t code;  // address; each inlined copy of a function has its own
    uintptr_t cfa;
    uint32_t call_site;
    uint32_t hook_site;
    bool is_inlined;
  };

  static constexpr uint32_t kSites = 8;
  static constexpr uintptr_t kFramePointerOffset = 16;

  // Half of the functions find their frames by the stack pointer.
  static void enter_slowly(uintptr_t function, uintptr_t call_site,
                           uintptr_t stack_pointer, uintptr_t frame_pointer,
                           uintptr_t hook_site) {
    const Frame& frame = current_->frames_.back();
    arctrace_shim_call call = {frame.cfa, stack_pointer, frame_pointer,
                               hook_site, call_site,     0};
    call.flags =
        frame.function % 2 == 0 ? ARCTRACE_SHIM_CFA_BY_SP : ARCTRACE_SHIM_CFA_BY_FP;
    if (!frame.is_inlined) call.flags |= ARCTRACE_SHIM_BEGINS_FRAME;
    arctrace_shim_enter(function, &call);
  }
  static void exit_slowly(uintptr_t function, uintptr_t, uintptr_t stack_pointer,
                          uintptr_t, uintptr_t) {
    if (arctrace_shim_exit(function, stack_pointer) != 0) return;
    arctrace_shim_exit_at(function, current_->frames_.back().cfa, stack_pointer);
  }

  static bool has_hook(uint32_t function) { return function % 3 != 0; }
  static uintptr_t size_of(uint32_t function) {
    return has_hook(function) ? uintptr_t{16} : uintptr_t{4096} << function % 5;
  }
  static uint32_t code_of(uint32_t function) { return 0x1000 * (function + 1); }

  // Calls a function from one of its kSites sites. Two of the functions that f calls are
  // inlined if both have hooks: a copy that is inlined into a function without hooks
  // looks the same after a jump out of it and another call of that function.
  void call(uint32_t site) {
    Frame callee{};
    if (frames_.empty()) {
      callee = {1, code_of(1), kStackHigh - 64, 99, code_of(1) + 4, false};
    } else {
      const Frame& caller = frames_.back();
      callee.function = (caller.function * 5 + site * 3 + 1) % kFunctions;
      callee.is_inlined =
          site >= 6 && has_hook(callee.function) && has_hook(caller.function);
      const uint32_t at = caller.code + 0x100 * site + 8;
      callee.code = callee.is_inlined ? at * 0x10001 : code_of(callee.function);
      callee.cfa = callee.is_inlined ? caller.cfa : caller.cfa - size_of(caller.function);
      callee.call_site = callee.is_inlined ? caller.call_site : at;
      callee.hook_site = callee.is_inlined ? at : code_of(callee.function) + 4;
      if (callee.cfa < kStackLow + size_of(callee.function)) return;
    }
    frames_.push_back(callee);
    enter();
  }

  // Jumps to any function further out. The writer can't see which of the functions
  // inlined into its frame continues then, so all of them do.
  void jump() {
    size_t left = 1 + random_.below(static_cast<uint32_t>(frames_.size()));
    while (left < frames_.size() && frames_[left].is_inlined) ++left;
    frames_.resize(left);
  }

  // The innermost function ends with a jump to another one, in its machine frame.
  void tail_call() {
    const Frame last = frames_.back();
    const uint32_t target = (last.function + 4) % kFunctions;
    if (last.is_inlined || frames_.size() == 1) return;
    // Without a hook in both, two functions can't be distinguished after a jump.
    if (!has_hook(last.function) || !has_hook(target)) return;
    frames_.pop_back();
    frames_.push_back(
        {target, code_of(target), last.cfa, last.call_site, code_of(target) + 4, false});
    enter();
  }

  void enter() {
    const Frame& frame = frames_.back();
    if (!has_hook(frame.function)) return;
    arctrace_shim_function_enter(code_of(frame.function), frame.call_site,
                                 frame.cfa - size_of(frame.function),
                                 frame.cfa - kFramePointerOffset, frame.hook_site);
    check();
  }

  void exit_innermost() {
    const Frame frame = frames_.back();
    if (has_hook(frame.function)) {
      const uint64_t key = code_of(frame.function);
      arctrace_shim_function_exit(key, frame.call_site,
                                  frame.cfa - size_of(frame.function),
                                  frame.cfa - kFramePointerOffset, frame.hook_site);
    }
    frames_.pop_back();
    if (has_hook(frame.function)) check();
  }

  void check() const {
    std::vector<uint64_t> expected;
    for (const Frame& frame : frames_) {
      if (has_hook(frame.function)) expected.push_back(code_of(frame.function));
    }
    const writer::OpenFrames& open = writer::thread_local_state.state->open;
    std::vector<uint64_t> known;
    for (uint32_t i = 0; i < open.depth; ++i) known.push_back(open.frames[i].key);
    REQUIRE(known == expected);
  }

  Random& random_;
  std::vector<Frame> frames_;  // outermost first
  static inline ModelProgram* current_ = nullptr;
  static inline uint64_t steps_ = 0;  // of the unwinder
};

void in_session(const std::function<void()>& calls) {
  TestSession test(small_buffer(4096, 4000));
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    arctrace_shim_thread_start(kStackLow, kStackHigh);
    arctrace_shim_set_unwinder(ModelProgram::find_caller);
    calls();
  });
}

TEST_CASE("call edges: random calls, returns, jumps and tail calls of hooked functions") {
  const uint64_t seed = test_seed();
  for (uint64_t run = 0; run < 10; ++run) {
    CAPTURE(run);
    in_session([&] {
      Random random(seed + run);
      ModelProgram program(random);
      program.use();
      for (int i = 0; i < 5000; ++i) program.step();
    });
  }
}

TEST_CASE("call edges: functions in turn are looked for on the stack once each") {
  in_session([] {
    Random random(1);
    ModelProgram program(random);
    program.use();
    program.call_in_turn();
    const uint64_t learned = ModelProgram::steps();
    CHECK(learned != 0);
    for (int i = 0; i < 100; ++i) program.call_in_turn();
    CHECK(ModelProgram::steps() == learned);
  });
}

TEST_CASE("call edges: a call whose caller is not found on the stack is not known") {
  static int asked = 0;
  in_session([] {
    arctrace_shim_set_unwinder([](arctrace_shim_call*, uintptr_t, uintptr_t) {
      ++asked;
      return 0;
    });
    const arctrace_shim_call outer = {9000, 8900, 0, 1, 2, ARCTRACE_SHIM_BEGINS_FRAME};
    const arctrace_shim_call inner = {8800, 8700, 0, 3, 4, ARCTRACE_SHIM_BEGINS_FRAME};
    arctrace_shim_enter(1, &outer);
    for (int i = 1; i <= 3; ++i) {
      arctrace_shim_enter(2, &inner);
      CHECK(asked == i);
      CHECK(arctrace_shim_exit(2, 8700) == 1);
    }
  });
}

}  // namespace
}  // namespace arctrace::testing
