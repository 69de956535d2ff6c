// The machine's clock, as it is seen from time namespaces.
#include "src/buffer/clock.hpp"

#include <doctest/doctest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "tests/support/child.hpp"
#include "tests/support/skip.hpp"

namespace arctrace::testing {
namespace {

#if !defined(CLONE_NEWTIME)
constexpr int CLONE_NEWTIME = 0x80;
#endif

TEST_CASE("clock: what /proc says of a time namespace") {
  const auto read = [](std::string_view text) {
    uint64_t offset_ns = 0;
    CHECK(read_time_namespace_offset(text, offset_ns));
    return static_cast<int64_t>(offset_ns);
  };
  CHECK(read("monotonic           0         0\nboottime            0         0\n") == 0);
  CHECK(read("monotonic      100000         5\nboottime     7 0\n") ==
        100'000'000'000'005);
  CHECK(read("monotonic          -3 999999999\n") == -2'000'000'001);
  CHECK(read("monotonic") == 0);
  uint64_t offset_ns = 77;
  CHECK_FALSE(read_time_namespace_offset("boottime 1 2", offset_ns));
  CHECK_FALSE(read_time_namespace_offset("", offset_ns));
  CHECK(offset_ns == 77);
}

TEST_CASE("clock: it is the machine's in a namespace whose clock is ahead") {
  if (geteuid() != 0 || access("/proc/self/ns/time", F_OK) != 0) {
    skip_case("needs root and time namespaces");
    return;
  }
  constexpr uint64_t kAheadNs = 100'000'000'000'000;
  constexpr uint64_t kSlackNs = 60'000'000'000;
  const uint64_t before = read_monotonic_ns();
  CHECK_CHILD([&] {
    if (unshare(CLONE_NEWTIME) != 0) return;  // not permitted
    std::ofstream("/proc/self/timens_offsets") << "monotonic 100000 0\n" << std::flush;
    CHECK(learn_time_namespace());  // it is for the children
    CHECK(time_namespace_offset_ns == 0);
    const pid_t child = fork();
    if (child == 0) {
      const bool is_ahead = read_monotonic_ns() > before + kAheadNs;
      const bool is_learned = learn_time_namespace();
      const uint64_t now = read_monotonic_ns();
      // Of a namespace that is no longer the children's, nothing is known.
      const bool is_unknown = unshare(CLONE_NEWTIME) == 0 && !learn_time_namespace();
      _exit(is_ahead && is_learned && now >= before && now < before + kSlackNs &&
                    is_unknown
                ? 0
                : 1);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  });
}

}  // namespace
}  // namespace arctrace::testing
