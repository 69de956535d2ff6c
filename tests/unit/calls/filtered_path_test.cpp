// The path of filtered calls records what the slow path records: random programs under
// random filters, once with that path and once without it.
#include "src/calls/filtered_path.hpp"

#include <arctrace/arctrace.h>
#include <doctest/doctest.h>

#include <csetjmp>
#include <string>
#include <vector>

#include "src/api/shim_interface.h"
#include "src/process/gate.hpp"
#include "tests/support/child.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/exit_hooked_function.hpp"
#include "tests/support/filter_flags.hpp"
#include "tests/support/hooked_function.hpp"
#include "tests/support/lock_call.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace::testing {
namespace {

// The tens of a key say what the filter has for the function, its ones how it is called.
enum class Function : uint8_t { kPlain, kFilteredIn, kNotrace, kHidden, kCount };
enum class Called : uint8_t { kHooked, kStub, kLocks, kExitHooked, kApi, kCount };

uint32_t flags_by_tens(uint64_t key) {
  switch (static_cast<Function>(key / 10)) {
    case Function::kFilteredIn:
      return ARCTRACE_SHIM_FILTERED_IN;
    case Function::kNotrace:
      return ARCTRACE_SHIM_NOTRACE;
    case Function::kHidden:
      return ARCTRACE_SHIM_HIDDEN;
    default:
      return 0;
  }
}

// A program of random calls. It is the same for the same seed.
class RandomCalls {
 public:
  explicit RandomCalls(uint64_t seed) : random_(seed) {}

  void run(uint32_t calls) {
    left_ = calls;
    while (left_ > 0) {
      // What is set here is not used after the jump, except for the member.
      if (setjmp(outside_) == 0) call(0);
    }
  }

 private:
  static constexpr uint32_t kDeepest = 6;

  void call(uint32_t depth) {
    if (left_ == 0) return;
    --left_;
    const auto body = [this, depth] {
      for (uint32_t i = random_.below(4); i > 0 && depth < kDeepest; --i) call(depth + 1);
      if (random_.below(8) == 0) arctrace_instant(7);
      if (random_.below(40) == 0) std::longjmp(outside_, 1);
    };
    const uint32_t function = random_.below(static_cast<uint32_t>(Function::kCount));
    const uint32_t called = random_.below(static_cast<uint32_t>(Called::kCount));
    const uint64_t key = uint64_t{function} * 10 + called;
    switch (static_cast<Called>(called)) {
      case Called::kHooked:
        return call_hooked(key, static_cast<uint32_t>(key) + 1, body);
      case Called::kStub:
        return call_with_locks(key, 0, body);
      case Called::kLocks:
        return call_with_locks(key, 1 + function % 2, body);
      case Called::kExitHooked:
        return call_exit_hooked(key, body);
      default:
        arctrace_enter(key);
        body();
        return arctrace_exit(key);
    }
  }

  Random random_;
  jmp_buf outside_{};
  uint32_t left_ = 0;
};

// The records of such a program under a filter, a line each.
std::string record_random(const arctrace_shim_filter& filter, uint64_t seed,
                          bool with_filtered_path) {
  TestSession test(small_buffer(1 << 16, 64));
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    start_hooked_functions();
    start_lock_calls();
    start_exit_hooked_functions();
    flags_of_key = flags_by_tens;
    // Not the address of a variable: a sanitizer may have those elsewhere.
    const uintptr_t here = writer::stack_pointer();
    arctrace_shim_thread_start(here - (4u << 20), here + (64u << 10));
    arctrace_shim_set_filter(&filter);
    if (!with_filtered_path) writer::close_fast_path();
    RandomCalls(seed).run(400);
    CHECK(writer::thread_local_state.guard == 0);
  });
  const DecodedTrace trace = test.finish();
  CHECK(joined(trace.problems) == "");
  CHECK(trace.lost() == 0);
  std::string text;
  for (const DecodedBlock& block : trace.blocks) {
    for (const DecodedRecord& record : block.records) {
      if (!record.is_users()) continue;
      text += std::to_string(record.type);
      for (size_t at = 0; at < record.body.size(); at += sizeof(uint64_t)) {
        text += ' ' + std::to_string(record.u64(at));
      }
      text += '\n';
    }
  }
  return text;
}

TEST_CASE("filtered path: it records what the slow path records") {
  constexpr uint64_t kNever = uint64_t{1} << 50;  // ns, longer than any call here
  Random random(test_seed());
  for (uint64_t i = 0; i < tries(80); ++i) {
    const uint64_t seed = random.next();
    const arctrace_shim_filter filter = {random.below(2), random.below(5),
                                         random.below(2) == 0 ? 0 : kNever};
    CAPTURE(seed);
    CAPTURE(filter.filter_in_only);
    CAPTURE(filter.depth_max);
    CAPTURE(filter.min_ns);
    const std::string slow = record_random(filter, seed, false);
    CHECK(!slow.empty());
    REQUIRE(record_random(filter, seed, true) == slow);
  }
}

}  // namespace
}  // namespace arctrace::testing
