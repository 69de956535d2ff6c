#include "tests/hostile/stage.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <new>

#include "tests/support/child.hpp"

namespace arctrace::testing {

void Stage::await_begin() {
  ++ready;
  while (!begun) usleep(100);
}

std::shared_ptr<Stage> make_stage() {
  void* const place = mmap(nullptr, sizeof(Stage), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(place != MAP_FAILED);
  return {new (place) Stage(), [](Stage* stage) { munmap(stage, sizeof *stage); }};
}

std::string wait_at_most(int pid, uint32_t seconds) {
  constexpr uint32_t kPollUs = 5000;
  for (uint64_t waited = 0; waited < uint64_t{seconds} * 1'000'000; waited += kPollUs) {
    siginfo_t info{};
    REQUIRE(waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) ==
            0);
    if (info.si_pid != 0) return wait_for_child(pid);
    usleep(kPollUs);
  }
  kill(pid, SIGKILL);
  wait_for_child(pid);
  return "hangs";
}

}  // namespace arctrace::testing
