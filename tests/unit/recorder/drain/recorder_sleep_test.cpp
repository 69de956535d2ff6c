// How the recorder waits where the kernel can't: by looking at the wake word and the
// high-water mark.
#include "src/recorder/drain/recorder_sleep.hpp"

#include <doctest/doctest.h>

#include "src/buffer/clock.hpp"
#include "src/buffer/wake_word.hpp"

namespace arctrace::testing {
namespace {

constexpr long kIntervalNs = 300'000'000;

uint64_t wait_ns(RecorderSleep& sleep, arctrace_control& control) {
  const uint64_t begin = read_monotonic_ns();
  sleep.wait(control, kIntervalNs, true);
  return read_monotonic_ns() - begin;
}

TEST_CASE("recorder sleep: blocks past the high-water mark end it, once for each block") {
  arctrace_control control{};
  RecorderSleep sleep(false);
  control.high_water_blocks = 10;
  control.taken = 9;
  CHECK(wait_ns(sleep, control) >= kIntervalNs);
  control.taken = 10;
  CHECK(wait_ns(sleep, control) < kIntervalNs);
  // The block can't be drained.
  CHECK(wait_ns(sleep, control) >= kIntervalNs);
  control.taken = 11;
  CHECK(wait_ns(sleep, control) < kIntervalNs);
  control.taken = 20;
  control.freed = 11;
  CHECK(wait_ns(sleep, control) >= kIntervalNs);
}

TEST_CASE("recorder sleep: without a mark, only the wake word ends it") {
  arctrace_control control{};
  RecorderSleep sleep(false);
  control.taken = 1000;
  CHECK(wait_ns(sleep, control) >= kIntervalNs);
  wake_collector(control);
  CHECK(wait_ns(sleep, control) < kIntervalNs);
}

}  // namespace
}  // namespace arctrace::testing
