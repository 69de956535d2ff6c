// Compares two processes that write at the same time with one alone, each on its own CPU.
// bench/run runs it under `arctrace record --mode=stop` with a buffer for the whole run,
// so that the collector sleeps. The floors show what the machine itself loses with two
// writers: in private memory, and in a chain in which both reserve space.
#include <arctrace/arctrace.h>
#include <benchmark/benchmark.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "bench/floors.hpp"
#include "bench/live_session.hpp"

namespace arctrace::bench {
namespace {

constexpr uint32_t kWriters = 2;
// Records of each writer in a measurement: about a millisecond, less than a slice of the
// scheduler's, so that on a shared machine some measurements are not disturbed.
constexpr int64_t kRecords = 50'000;
constexpr int kTries = 20;

enum class Task : uint32_t { kPopulate, kFloor, kChain, kEvents, kEnd };

struct Result {
  double start_ns;
  double wall_ns;
  double cpu_ns;
  uint64_t lost;
};

// Synchronizes the writers; it lies in memory that all processes share.
struct Meeting {
  alignas(64) std::atomic<uint32_t> arrived;
  alignas(64) std::atomic<uint64_t> chain_next;
  alignas(64) std::array<Result, kWriters> results;
};

double now_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

void check(bool good, const char* what) {
  if (good) return;
  std::perror(what);
  std::_Exit(1);
}

void* map_shared(size_t size) {
  void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  check(memory != MAP_FAILED, "mmap");
  return memory;
}

// The least that records of several writers in one chain cost: a fetch-add that reserves,
// and the stores of an event's record in the shared scope.
class ChainFloor {
 public:
  ChainFloor() : memory_(static_cast<std::byte*>(map_shared(kSize + kRecord))) {}

  // As in LiveSession::populate(): while one writer is in a page fault, the other one has
  // the chain to itself.
  void populate() const {
    check(madvise(memory_, kSize + kRecord, MADV_POPULATE_WRITE) == 0, "madvise");
  }

  void store(std::atomic<uint64_t>& next, uint32_t writer, uint64_t payload) const {
    const uint64_t offset = next.fetch_add(kRecord, std::memory_order_relaxed);
    std::byte* const record = memory_ + offset % kSize;
    auto& word0 = *reinterpret_cast<uint32_t*>(record);
    const uint64_t ticks = read_ticks(kFloorClock);
    __atomic_store_n(&word0, kRecord | ARCTRACE_IN_PROGRESS, __ATOMIC_RELAXED);
    std::memcpy(record + 4, &writer, sizeof writer);
    std::memcpy(record + 8, &ticks, sizeof ticks);
    std::memcpy(record + 16, &writer, sizeof writer);  // the event's number
    std::memcpy(record + 20, &payload, sizeof payload);
    __atomic_store_n(&word0, kRecord, __ATOMIC_RELEASE);
  }

 private:
  static constexpr uint32_t kRecord = 28;
  static constexpr uint64_t kSize = uint64_t{kRecord} << 21;

  std::byte* memory_;
};

// A process that waits for tasks and begins each together with the others.
class Writer {
 public:
  Writer(Meeting& meeting, const ChainFloor& chain, uint32_t index)
      : meeting_(meeting), chain_(chain), index_(index) {
    check(pipe(tasks_) == 0 && pipe(done_) == 0, "pipe");
    pid_ = fork();
    check(pid_ >= 0, "fork");
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      pin_to_cpu(index);
      work();
    }
  }
  ~Writer() {
    start(Task::kEnd, 1);
    waitpid(pid_, nullptr, 0);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void start(Task task, uint32_t together) const {
    const Command command{task, together};
    check(write(tasks_[1], &command, sizeof command) == sizeof command, "write");
  }
  void wait() const {
    char done = 0;
    check(read(done_[0], &done, 1) == 1, "a writer process has ended");
  }

 private:
  struct Command {
    Task task;
    uint32_t together;  // how many writers begin at once
  };

  [[noreturn]] void work() {
    const LiveSession session;
    FloorRing ring;
    const arctrace_field field = {"value", ARCTRACE_FIELD_U64};
    const uint32_t event = arctrace_define_event("number", 0, &field, 1);
    Command command{};
    while (read(tasks_[0], &command, sizeof command) == sizeof command) {
      if (command.task == Task::kEnd) break;
      if (command.task == Task::kPopulate) {
        session.populate();
        chain_.populate();
      }
      if (command.task == Task::kFloor) {
        measure(command.together, [&](uint64_t i) { ring.store<20>(i); });
      }
      if (command.task == Task::kChain) {
        measure(command.together,
                [&](uint64_t i) { chain_.store(meeting_.chain_next, index_, i); });
      }
      if (command.task == Task::kEvents) {
        measure(command.together,
                [&](uint64_t i) { arctrace_write(event, &i, sizeof i); });
      }
      check(write(done_[1], "", 1) == 1, "write");
    }
    std::_Exit(0);
  }

  template <class Body>
  void measure(uint32_t together, Body body) {
    const uint64_t lost = arctrace_lost(nullptr);
    meeting_.arrived.fetch_add(1);
    while (meeting_.arrived.load() < together) {
    }
    const double wall = now_ns(CLOCK_MONOTONIC);
    const double cpu = now_ns(CLOCK_THREAD_CPUTIME_ID);
    for (int64_t i = 0; i < kRecords; ++i) {
      body(static_cast<uint64_t>(i));
      benchmark::ClobberMemory();
    }
    meeting_.results[index_] = {wall, now_ns(CLOCK_MONOTONIC) - wall,
                                now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu,
                                arctrace_lost(nullptr) - lost};
  }

  Meeting& meeting_;
  const ChainFloor& chain_;
  uint32_t index_;
  int tasks_[2] = {};
  int done_[2] = {};
  pid_t pid_ = 0;
};

// What `writers` processes took for `task` at the same time.
struct Round {
  double wall_ns = 0;  // of the slowest
  bool quiet = true;   // all ran at once and none lost its CPU
  uint64_t lost = 0;
};

Round run_round(Meeting& meeting, const std::array<Writer, kWriters>& all, Task task,
                uint32_t writers) {
  constexpr double kTolerance = 0.03;
  meeting.arrived = 0;
  for (uint32_t i = 0; i < writers; ++i) all[i].start(task, writers);
  for (uint32_t i = 0; i < writers; ++i) all[i].wait();
  Round round;
  for (uint32_t i = 0; i < writers; ++i) {
    const Result& result = meeting.results[i];
    const double late_ns = result.start_ns - meeting.results[0].start_ns;
    round.wall_ns = std::max(round.wall_ns, result.wall_ns);
    round.quiet = round.quiet && result.wall_ns <= result.cpu_ns * (1 + kTolerance) &&
                  std::abs(late_ns) <= result.wall_ns * kTolerance;
    round.lost += result.lost;
  }
  return round;
}

void measure(benchmark::State& state, Meeting& meeting,
             const std::array<Writer, kWriters>& all, Task task, uint32_t writers) {
  for (auto _ : state) {
    Round round;
    int tries = 0;
    do {
      round = run_round(meeting, all, task, writers);
    } while (!round.quiet && ++tries < kTries);
    state.SetIterationTime(round.wall_ns * 1e-9);
    state.counters["record_ns"] = round.wall_ns / static_cast<double>(kRecords);
    // Not SkipWithError(): with it the library (1.7.1) ends by SIGSEGV when it
    // interleaves.
    state.counters["disturbed"] = !round.quiet;
    state.counters["lost"] = static_cast<double>(round.lost);
  }
}

}  // namespace
}  // namespace arctrace::bench

int main(int argc, char** argv) {
  using namespace arctrace::bench;
  benchmark::Initialize(&argc, argv);
  auto& meeting = *new (map_shared(sizeof(Meeting))) Meeting{};
  const ChainFloor chain;
  const std::array<Writer, kWriters> writers = {Writer{meeting, chain, 0},
                                                Writer{meeting, chain, 1}};
  for (const Writer& writer : writers) {
    writer.start(Task::kPopulate, 1);
    writer.wait();
  }
  for (uint32_t n = 1; n <= kWriters; ++n) {
    const auto add = [&, n](const char* name, Task task) {
      benchmark::RegisterBenchmark((std::string(name) + "/" + std::to_string(n)).c_str(),
                                   [&, n, task](benchmark::State& state) {
                                     measure(state, meeting, writers, task, n);
                                   })
          ->Iterations(1)
          ->UseManualTime();
    };
    add("floor", Task::kFloor);
    add("chain", Task::kChain);
    add("event", Task::kEvents);
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
