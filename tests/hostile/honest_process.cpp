#include "tests/hostile/honest_process.hpp"

#include <arctrace/arctrace.h>
#include <doctest/doctest.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <thread>

#include "tests/hostile/guarded_session.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace::testing {
namespace {

constexpr uint32_t kEvent = 1;

void interrupt(int /*signal*/) {
  arctrace_instant(7);
  arctrace_enter(8);
  arctrace_exit(8);
}

class Calls {
 public:
  explicit Calls(uint64_t seed) : random_(seed) {}

  // Makes one call, or a few that belong together.
  void next() {
    const uint32_t size = random_.below(random_.below(8) == 0 ? 5000 : 300);
    switch (random_.below(12)) {
      case 0:
      case 1:
      case 2:
        arctrace_write(kEvent, payload_.data(), size);
        break;
      case 3:
        settle(arctrace_reserve(kEvent, size), size);
        break;
      case 4:
      case 5:
        arctrace_enter(random_.below(100));
        break;
      case 6:
        arctrace_exit(random_.below(100));
        break;
      case 7:
        arctrace_text("%u", size);
        break;
      case 8:
        arctrace_mark("mark");
        break;
      case 9:
        define();
        break;
      case 10:
        arctrace_counter(1, size);
        break;
      default:
        others();
        break;
    }
  }

 private:
  void settle(void* place, uint32_t size) {
    if (place == nullptr) return;
    std::memset(place, 0x55, size);
    if (random_.below(2) == 0) {
      arctrace_commit(place);
    } else {
      arctrace_discard(place);
    }
  }
  void define() {
    if (defined_++ > 200) return;  // each definition stays for good
    arctrace_define_name("a name");
    const arctrace_field field{"field", ARCTRACE_FIELD_U32};
    arctrace_define_event("an event", 0, &field, 1);
  }
  void others() {
    arctrace_flush();
    arctrace_lost(nullptr);
    arctrace_snapshot(random_.below(100));
    if (random_.below(16) == 0) arctrace_thread_name("honest");
  }

  Random random_;
  std::array<std::byte, 5000> payload_{};
  uint32_t defined_ = 0;
};

void call_often(uint64_t seed, uint32_t times) {
  Calls calls(seed);
  for (uint32_t i = 0; i < times; ++i) calls.next();
}

void fork_a_writer(uint64_t seed) {
  const int child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    call_often(seed, 100);
    _exit(0);
  }
  int status = 0;
  pid_t ended = 0;
  do {
    ended = waitpid(child, &status, 0);
  } while (ended < 0 && errno == EINTR);
  REQUIRE(ended == child);
  REQUIRE(status == 0);
}

// Interrupts whatever runs, also in the middle of a record.
void interrupt_often() {
  struct sigaction action {};
  action.sa_handler = interrupt;
  action.sa_flags = SA_RESTART;
  REQUIRE(sigaction(SIGPROF, &action, nullptr) == 0);
  const itimerval often{{0, 2000}, {0, 2000}};
  REQUIRE(setitimer(ITIMER_PROF, &often, nullptr) == 0);
}

}  // namespace

void write_honestly(const std::string& path, uint32_t number, uint64_t seed,
                    Stage& stage) {
  join_guarded(path);
  stage.await_begin();
  interrupt_often();
  Random random(seed);
  Calls calls(random.next());
  while (!stage.ended) {
    switch (random.below(500)) {
      case 0:
        std::thread(call_often, random.next(), 300).join();
        break;
      case 1:
        fork_a_writer(random.next());
        break;
      default:
        calls.next();
        break;
    }
    ++stage.calls[number];
  }
}

}  // namespace arctrace::testing
