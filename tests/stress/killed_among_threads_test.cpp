// Eight writers, each a process, are killed at random moments beside many threads, while
// all of them get blocks of their own and return to the chain. A death costs at most the
// record that was being written, the others lose nothing, and blocks and slots of the
// dead are used again.
#include <arctrace/arctrace.h>
#include <doctest/doctest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "src/process/session.hpp"
#include "src/protocol/block_state.hpp"
#include "src/writer/thread_state.hpp"
#include "tests/stress/cuts.hpp"
#include "tests/support/child.hpp"
#include "tests/support/effort.hpp"

namespace arctrace::testing {
namespace {

constexpr uint32_t kAtOnce = 8;
constexpr uint32_t kLivesMax = 1000;
constexpr uint32_t kThreadsMax = 2000 - kAtOnce;
constexpr uint32_t kWriterEvent = 1;
constexpr uint32_t kOtherEvent = 2;
// How many records a burst has: more than a thread writes into the chain before the
// writer decides again.
constexpr uint32_t kBurst = 400;
// How many records all write between two passes of the collector: more than they write
// while it has a CPU, and fewer than fit into the buffer if it has none.
constexpr uint64_t kAhead = 20'000;
// By how much sooner than usual a thread is found to be slow.
constexpr uint64_t kHaste = 200;

struct Size {
  uint32_t threads;
  uint32_t kills;
};
Size size_of_test() {
  if (is_long()) return {kThreadsMax, 600};
  return {300, is_gate() ? 12u : 30u};
}

// Counts of one writer, or of one thread beside the writers.
struct Life {
  std::atomic<uint64_t> begun;  // records that it has attempted
  std::atomic<uint64_t> done;
};

// Lies in memory that all processes share.
struct Shared {
  std::atomic<uint32_t> changes;  // of threads from or to blocks of their own
  std::atomic<bool> is_over;
  std::atomic<uint64_t> written;
  std::atomic<uint64_t> allowed;  // how many may be written

  void allow_more() { allowed = written + kAhead; }
  Life writers[kLivesMax];
  Life others[kThreadsMax];
};

Shared& new_shared() {
  void* made = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(made != MAP_FAILED);
  return *new (made) Shared{};
}

uint64_t numbered(uint32_t life, uint64_t record) {
  return uint64_t{life} << 32 | record;
}

void write_burst(Shared& shared, uint32_t event, uint32_t number, Life& life,
                 uint32_t records) {
  for (uint32_t i = 0; i < records; ++i) {
    while (shared.written >= shared.allowed) {
      if (shared.is_over) return;
      usleep(1000);
    }
    ++shared.written;
    const uint64_t record = life.done;
    life.begun = record + 1;
    const writer::ThreadState* state = writer::thread_local_state.state;
    const bool had_own_blocks = state != nullptr && state->has_own_blocks;
    write_checked(event, numbered(number, record));
    life.done = record + 1;
    if (writer::thread_local_state.state->has_own_blocks != had_own_blocks)
      ++shared.changes;
  }
}

void join_in_haste(const TestSession& test) {
  REQUIRE(arctrace_attach(test.path().c_str()) == 0);
  writer::session.ticks_per_second /= kHaste;
}

[[noreturn]] void write_until_killed(const TestSession& test, Shared& shared,
                                     uint32_t number, uint64_t seed) {
  join_in_haste(test);
  Random random(seed);
  for (;;) {
    write_burst(shared, kWriterEvent, number, shared.writers[number], kBurst);
    usleep(random.below(30'000));
  }
}

struct OtherThread {
  Shared* shared;
  uint32_t number;
  uint64_t seed;
};

// Writes little, and now and then much.
void* run_beside_writers(void* argument) {
  const OtherThread& thread = *static_cast<OtherThread*>(argument);
  Random random(thread.seed);
  while (!thread.shared->is_over) {
    const uint32_t records = random.below(20) == 0 ? kBurst : 1;
    write_burst(*thread.shared, kOtherEvent, thread.number,
                thread.shared->others[thread.number], records);
    usleep(20'000 + random.below(200'000));
  }
  return nullptr;
}

void run_other_threads(const TestSession& test, Shared& shared, uint32_t threads,
                       uint64_t seed) {
  join_in_haste(test);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 << 10);
  Random random(seed);
  std::vector<OtherThread> all(threads);
  std::vector<pthread_t> ids(threads);
  for (uint32_t i = 0; i < threads; ++i) {
    all[i] = {&shared, i, random.next()};
    REQUIRE(pthread_create(&ids[i], &attributes, run_beside_writers, &all[i]) == 0);
  }
  for (const pthread_t id : ids) pthread_join(id, nullptr);
}

// Returns soon after the writer has begun another record, or after some time without one.
void wait_for_record(const Life& life, uint32_t microseconds) {
  const uint64_t before = life.begun;
  for (int i = 0; i < 2000 && life.begun == before; ++i) usleep(10);
  const uint64_t ticks = writer::session_ticks();
  while (writer::session_ticks() - ticks < uint64_t{microseconds} * 1000) {
  }
}

// The records of an event in the trace, by the numbers of their writers. Damage is a
// problem.
std::vector<std::vector<uint64_t>> records_of(const DecodedTrace& trace, uint32_t event,
                                              uint32_t lives) {
  std::vector<std::vector<uint64_t>> found(lives);
  uint64_t damaged = 0;
  for (const DecodedRecord& record : trace.of_type(ARCTRACE_TYPE_EVENT)) {
    if (record.u32(0) != event) continue;
    const uint64_t number = record.u64(4);
    if (record.u64(12) != checked(number).squared || number >> 32 >= lives) {
      ++damaged;
    } else {
      found[number >> 32].push_back(number & UINT32_MAX);
    }
  }
  CHECK(damaged == 0);
  return found;
}

// A writer's records are there in their order, each once: all that were done, and at most
// the one more that was begun.
void check_lives(const DecodedTrace& trace, uint32_t event, const Life* lives,
                 uint32_t count) {
  uint64_t wrong = 0;
  const auto found = records_of(trace, event, count);
  for (uint32_t life = 0; life < count; ++life) {
    const std::vector<uint64_t>& records = found[life];
    const bool is_whole =
        records.size() == lives[life].done || records.size() == lives[life].begun;
    bool is_right = is_whole || trace.lost() != 0;
    for (size_t i = 0; i < records.size(); ++i) {
      is_right &= trace.lost() != 0 || records[i] == i;
      is_right &= i == 0 || records[i] > records[i - 1];
    }
    if (!is_right) ++wrong;
  }
  CAPTURE(event);
  CHECK(wrong == 0);
}

void check_all_is_free(TestSession& test) {
  while (test.drain().round() > 0) {
  }
  const uint32_t open = test.blocks_in(ARCTRACE_PHASE_SHARED);  // the chain's last
  CHECK(open <= 1);
  CHECK(test.blocks_in(ARCTRACE_PHASE_FREE) + open == test.view().geometry().block_count);
  uint32_t locked = 0;
  for (uint32_t i = 0; i < Recycle<IpcAtomics>::slots_used(test.view()); ++i) {
    if (test.view().slot(i).lock != 0) ++locked;
  }
  CHECK(locked == 0);
}

TEST_CASE("killed in a crowd: while threads get blocks of their own, and give them up") {
  const Size size = size_of_test();
  Random random(test_seed());
  recorder::BufferOptions options = small_buffer(4096, 2048, 4096);
  options.scope = ARCTRACE_SCOPE_ADAPTIVE;
  TestSession test(options);
  Shared& shared = new_shared();
  shared.allow_more();
  const uint64_t seed = random.next();
  const int others =
      start_child([&] { run_other_threads(test, shared, size.threads, seed); });
  std::vector<int> running;
  std::vector<uint32_t> lives;
  uint32_t started = 0;
  const auto start = [&](uint32_t at) {
    const uint32_t number = started++;
    const uint64_t its_seed = random.next();
    const int pid =
        start_child([&] { write_until_killed(test, shared, number, its_seed); });
    running[at] = pid;
    lives[at] = number;
  };
  running.resize(kAtOnce);
  lives.resize(kAtOnce);
  for (uint32_t at = 0; at < kAtOnce; ++at) start(at);
  const auto enough_changes = [&] { return shared.changes > size.kills; };
  for (uint32_t kills = 0;
       kills < size.kills || (!enough_changes() && started < kLivesMax); ++kills) {
    const uint32_t at = random.below(kAtOnce);
    wait_for_record(shared.writers[lives[at]], random.below(100));
    kill(running[at], SIGKILL);
    CHECK(wait_for_child(running[at]) == "signal 9");
    test.drain().round();
    shared.allow_more();
    start(at);
  }
  for (const int pid : running) {
    kill(pid, SIGKILL);
    wait_for_child(pid);
  }
  shared.is_over = true;
  CHECK(wait_for_child(others) == "");
  check_all_is_free(test);
  CHECK(enough_changes());
  const DecodedTrace trace = test.finish();
  CHECK(joined(trace.problems) == "");
  CHECK(trace.lost() == 0);
  CHECK(trace.torn() <= started);
  check_lives(trace, kWriterEvent, shared.writers, started);
  check_lives(trace, kOtherEvent, shared.others, size.threads);
  MESSAGE(started << " writers killed among " << size.threads << " threads, "
                  << shared.changes.load() << " changes of the form, " << trace.written()
                  << " records, " << trace.torn() << " torn");
}

}  // namespace
}  // namespace arctrace::testing
