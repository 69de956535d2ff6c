// How the recorder waits where the kernel can't: it polls the wake word and the
// high-water mark.
#include <doctest/doctest.h>

#include "src/buffer/buffer_view.hpp"
#include "src/buffer/clock.hpp"
#include "src/recorder/drain/recorder.hpp"

namespace arctrace::testing {
namespace {

constexpr long kIntervalNs = 50'000'000;

// Whether it waits for the whole interval.
bool waits(recorder::RecorderSleep& sleep, arctrace_control& control) {
  const uint64_t begin = read_monotonic_ns();
  sleep.wait(control, kIntervalNs, true);
  return read_monotonic_ns() - begin >= kIntervalNs;
}

// Whether it ends before an interval that is much longer than any delay of the machine.
bool ends(recorder::RecorderSleep& sleep, arctrace_control& control) {
  constexpr long kLongNs = 600 * 1'000'000'000L;
  const uint64_t begin = read_monotonic_ns();
  sleep.wait(control, kLongNs, true);
  return read_monotonic_ns() - begin < kLongNs;
}

TEST_CASE("recorder sleep: blocks past the high-water mark end it, once for each block") {
  arctrace_control control{};
  recorder::RecorderSleep sleep(false);
  control.high_water_blocks = 10;
  control.taken = 9;
  CHECK(waits(sleep, control));
  control.taken = 10;
  CHECK(ends(sleep, control));
  // The block can't be drained.
  CHECK(waits(sleep, control));
  control.taken = 11;
  CHECK(ends(sleep, control));
  control.taken = 20;
  control.freed = 11;
  CHECK(waits(sleep, control));
}

TEST_CASE("recorder sleep: without a mark, only the wake word ends it") {
  arctrace_control control{};
  recorder::RecorderSleep sleep(false);
  control.taken = 1000;
  CHECK(waits(sleep, control));
  wake_collector(control);
  CHECK(ends(sleep, control));
}

}  // namespace
}  // namespace arctrace::testing
