// The view `locks`: whose waits and holds are counted, until when, and that the parts of
// a wait add up to the wait.
#include "reader/report/locks_view.hpp"

#include <doctest/doctest.h>

#include <map>
#include <tuple>
#include <vector>

#include "tests/unit/report/viewed.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

constexpr uint64_t kLock = 0x40, kOther = 0x80;

// A process of three threads.
struct LockThreads {
  RecordScript s;
  ThreadIndex a = s.program(10, "one");
  ThreadIndex b = s.thread(s.definitions.threads()[a].process, 11);
  ThreadIndex c = s.thread(s.definitions.threads()[a].process, 12);

  void call(ThreadIndex thread, int64_t from_ns, int64_t until_ns, const char* function,
            uint64_t lock = kLock) {
    s.enter(thread, from_ns, function, {lock});
    s.exit(thread, until_ns);
  }
  void lock(ThreadIndex thread, int64_t from_ns, int64_t until_ns) {
    call(thread, from_ns, until_ns, "pthread_mutex_lock");
  }
  void unlock(ThreadIndex thread, int64_t time_ns) {
    call(thread, time_ns, time_ns, "pthread_mutex_unlock");
  }
  void end(int64_t time_ns) { s.text(kNoIndex, time_ns, "the recording ends"); }
};

// The only lock of the view, or the lock with this address. Also checks that the parts of
// waits add up.
Json lock_of(const Json& view, uint64_t lock = kLock) {
  Json found;
  for (const Json& row : view.at("locks")) {
    uint64_t waited_ns = row.at("waited_for_nobody_ns");
    for (const Json& share : row.at("waited_for")) {
      waited_ns += share.at("waited_ns").get<uint64_t>();
    }
    CHECK(waited_ns == row.at("waited_ns").get<uint64_t>());
    if (row.at("address") == (lock == kLock ? "0x40" : "0x80")) found = row;
  }
  REQUIRE(found.is_object());
  return found;
}
Json lock_of(const RecordScript& script, uint64_t lock = kLock) {
  return lock_of(Viewed(script).json("locks"), lock);
}

struct LockCounts {
  uint64_t acquired = 0, waits = 0, open_waits = 0, waited_ns = 0;
  uint64_t holds = 0, open_holds = 0, held_ns = 0;
  bool operator==(const LockCounts&) const = default;
};
LockCounts counts_of(const Json& row) {
  return {row.at("acquired"),  row.at("waits"), row.at("open_waits"),
          row.at("waited_ns"), row.at("holds"), row.at("open_holds"),
          row.at("held_ns")};
}

// The time by the holder's tid; 0: nobody.
std::map<uint64_t, uint64_t> waited_for(const Json& row) {
  std::map<uint64_t, uint64_t> times;
  for (const Json& share : row.at("waited_for")) {
    times[share.at("tid")] += share.at("waited_ns").get<uint64_t>();
  }
  if (row.at("waited_for_nobody_ns") != 0) times[0] = row.at("waited_for_nobody_ns");
  return times;
}
using WaitedFor = std::map<uint64_t, uint64_t>;

}  // namespace

TEST_CASE("locks: a wait and a hold that never end count up to the end") {
  LockThreads t;
  t.s.enter(t.a, 100, "main");
  t.lock(t.a, 110, 120);
  t.s.enter(t.b, 200, "pthread_mutex_lock", {kLock});
  t.end(1'000);
  const Json row = lock_of(t.s);
  CHECK(counts_of(row) == LockCounts{1, 1, 1, 800, 1, 1, 880});
  CHECK(waited_for(row) == WaitedFor{{10, 800}});
  CHECK(row.at("waited_for").at(0).at("path").dump() == R"(["main"])");
  for (const auto& [what, tid, duration_ns] : {std::tuple("longest_wait", 11, 800),
                                               {"holder", 10, 880},
                                               {"longest_hold", 10, 880}}) {
    const Json& span = row.at(what);
    CHECK(span.at("open") == true);
    CHECK(span.at("tid") == tid);
    CHECK(span.at("duration_ns") == duration_ns);
  }
  REQUIRE(row.at("longest_hold_waiters").size() == 1);
  CHECK(row.at("longest_hold_waiters").at(0).at("tid") == 11);
  CHECK(row.at("longest_hold_waiters").at(0).at("waited_ns") == 800);
  const std::string text = Viewed(t.s).text("locks");
  CHECK(row.at("first_path").dump() == R"(["main"])");
  CHECK(text.find("mutex 0x40, first in main [open: 1 wait, 1 hold] of 10") !=
        std::string::npos);
  CHECK(text.find("longest wait: 800 ns [open] by ") != std::string::npos);
  CHECK(text.find("800 ns while it was had by ") != std::string::npos);
  CHECK(text.find("\n[open]: ") != std::string::npos);
}

TEST_CASE("locks: what ended is not marked as open") {
  LockThreads t;
  t.lock(t.a, 110, 120);
  t.s.enter(t.b, 200, "pthread_mutex_lock", {kLock});
  t.unlock(t.a, 500);
  t.s.exit(t.b, 510);
  t.unlock(t.b, 600);
  t.end(1'000);
  const Json row = lock_of(t.s);
  CHECK(counts_of(row) == LockCounts{2, 1, 0, 310, 2, 0, 470});
  CHECK(waited_for(row) == WaitedFor{{10, 300}, {0, 10}});
  CHECK(row.at("longest_wait").at("open") == false);
  const std::string text = Viewed(t.s).text("locks");
  CHECK(text.find("[open") == std::string::npos);
  CHECK(text.find("10 ns while nobody was seen to have it") != std::string::npos);
}

TEST_CASE("locks: a hold ends with its thread, but those that wait for it wait on") {
  LockThreads t;
  t.lock(t.a, 110, 120);
  t.s.enter(t.b, 200, "pthread_mutex_lock", {kLock});
  t.end(1'000);
  t.s.definitions.mutable_thread(t.a)->end_ns = 420;
  const Json row = lock_of(t.s);
  CHECK(counts_of(row) == LockCounts{1, 1, 1, 800, 1, 1, 300});
  CHECK(waited_for(row) == WaitedFor{{10, 800}});
  CHECK(row.at("longest_hold_waiters").at(0).at("waited_ns") == 220);
}

TEST_CASE("locks: an open wait for a lock that nobody was seen to have") {
  LockThreads t;
  t.s.enter(t.b, 200, "pthread_mutex_lock", {kLock});
  t.end(1'000);
  const Json row = lock_of(t.s);
  CHECK(counts_of(row) == LockCounts{0, 1, 1, 800, 0, 0, 0});
  CHECK(waited_for(row) == WaitedFor{{0, 800}});
  CHECK(row.at("holder").is_null());
}

TEST_CASE("locks: open waits for conditions and semaphores; what they gave up is free") {
  LockThreads t;
  t.lock(t.a, 110, 120);
  t.s.enter(t.a, 200, "pthread_cond_wait", {kOther, kLock});
  t.end(1'000);
  const Json condition = lock_of(t.s, kOther);
  CHECK(counts_of(condition) == LockCounts{0, 1, 1, 800, 0, 0, 0});
  CHECK(condition.at("longest_wait").at("open") == true);
  CHECK(counts_of(lock_of(t.s)) == LockCounts{1, 0, 0, 0, 1, 0, 80});
  // Nobody can hold it, so the view names nobody.
  CHECK(Viewed(t.s).text("locks").find("nobody") == std::string::npos);

  LockThreads u;
  u.s.enter(u.a, 200, "sem_wait", {kLock});
  u.end(1'000);
  CHECK(counts_of(lock_of(u.s)) == LockCounts{0, 1, 1, 800, 0, 0, 0});
}

TEST_CASE("locks: what goes on beyond a time range is open at its end") {
  LockThreads t;
  t.lock(t.a, 110, 120);
  t.s.enter(t.b, 200, "pthread_mutex_lock", {kLock});
  t.s.enter(t.c, 300, "pthread_cond_wait", {kOther, 0x99});
  t.unlock(t.a, 900);
  t.s.exit(t.b, 910);
  t.s.exit(t.c, 920);
  t.unlock(t.b, 950);
  t.end(1'000);
  Viewed viewed(t.s);
  viewed.replay.filter.from_ns = 0;
  viewed.replay.filter.until_ns = 500;
  const Json cut = viewed.json("locks");
  CHECK(counts_of(lock_of(cut)) == LockCounts{1, 1, 1, 300, 1, 1, 380});
  CHECK(waited_for(lock_of(cut)) == WaitedFor{{10, 300}});
  CHECK(counts_of(lock_of(cut, kOther)) == LockCounts{0, 1, 1, 200, 0, 0, 0});
  // The calls are the same when they are shown in full.
  const Json full = Viewed(t.s).json("locks");
  CHECK(counts_of(lock_of(full)) == LockCounts{2, 1, 0, 710, 2, 0, 820});
  CHECK(counts_of(lock_of(full, kOther)) == LockCounts{1, 1, 0, 620, 0, 0, 0});
}

TEST_CASE("locks: who gives up has waited, who only tries has not") {
  LockThreads t;
  const auto fail = [&](ThreadIndex thread, int64_t from_ns, int64_t until_ns,
                        const char* function) {
    t.s.enter(thread, from_ns, function, {kLock});
    t.s.result(thread, until_ns, {number_arg(ARCTRACE_VALUE_SIGNED, 0, 110, 4)});
    t.s.exit(thread, until_ns);
  };
  t.lock(t.a, 110, 120);
  fail(t.b, 200, 400, "pthread_mutex_timedlock");
  fail(t.b, 450, 460, "pthread_mutex_trylock");
  t.s.enter(t.c, 490, "pthread_mutex_trylock", {kLock});
  t.unlock(t.a, 500);
  t.end(1'000);
  const Json row = lock_of(t.s);
  CHECK(counts_of(row) == LockCounts{1, 1, 0, 200, 1, 0, 380});
  CHECK(waited_for(row) == WaitedFor{{10, 200}});
  CHECK(row.at("holder").at("tid") == 10);
  CHECK(row.at("holder").at("duration_ns") == 280);
}

TEST_CASE("locks: of several readers a moment is that one's who had it longest") {
  LockThreads t;
  t.call(t.a, 0, 10, "pthread_rwlock_rdlock");
  t.s.enter(t.c, 20, "pthread_rwlock_wrlock", {kLock});
  t.call(t.b, 40, 50, "pthread_rwlock_rdlock");
  t.call(t.a, 100, 100, "pthread_rwlock_unlock");
  t.call(t.b, 200, 200, "pthread_rwlock_unlock");
  t.s.exit(t.c, 230);
  t.call(t.c, 300, 300, "pthread_rwlock_unlock");
  const Json row = lock_of(t.s);
  CHECK(counts_of(row) == LockCounts{3, 1, 0, 210, 3, 0, 310});
  CHECK(waited_for(row) == WaitedFor{{10, 30}, {11, 150}, {0, 30}});
}

TEST_CASE("locks: a hold of which the end was not seen is told apart") {
  LockThreads t;
  t.lock(t.a, 110, 120);
  t.lock(t.b, 200, 210);
  t.unlock(t.b, 300);
  t.end(1'000);
  const Json view = Viewed(t.s).json("locks");
  CHECK(counts_of(lock_of(view)) == LockCounts{2, 0, 0, 0, 1, 0, 90});
  CHECK(view.at("holds_without_end") == 1);
  CHECK(Viewed(t.s).text("locks").find("1 hold of which the end was not seen") !=
        std::string::npos);

  // Another thread has released the lock.
  LockThreads u;
  u.lock(u.a, 110, 120);
  u.unlock(u.b, 300);
  u.end(1'000);
  CHECK(counts_of(lock_of(u.s)) == LockCounts{1, 0, 0, 0, 0, 0, 0});
  CHECK(Viewed(u.s).json("locks").at("holds_without_end") == 1);
}

TEST_CASE("locks: taken twice and released once, it was had up to there") {
  for (const bool is_waited_for : {false, true}) {
    CAPTURE(is_waited_for);
    LockThreads t;
    t.lock(t.a, 110, 120);
    t.lock(t.a, 130, 140);
    t.unlock(t.a, 300);
    if (is_waited_for) t.s.enter(t.b, 400, "pthread_mutex_lock", {kLock});
    t.end(1'000);
    const Json row = lock_of(t.s);
    // A waiter shows that the lock is recursive, and its owner still holds it.
    CHECK(counts_of(row) == (is_waited_for ? LockCounts{2, 1, 1, 600, 1, 1, 880}
                                           : LockCounts{2, 0, 0, 0, 1, 0, 180}));
  }
}

TEST_CASE("locks: a thread that waits for itself") {
  LockThreads t;
  t.lock(t.a, 110, 120);
  t.s.enter(t.a, 200, "pthread_mutex_lock", {kLock});
  t.end(1'000);
  const Json view = Viewed(t.s).json("locks");
  CHECK(waited_for(lock_of(view)) == WaitedFor{{10, 800}});
  REQUIRE(view.at("deadlocks").size() == 1);
  CHECK(view.at("deadlocks").at(0).size() == 1);
}

TEST_CASE("locks: the lines of a lock add up, however many had it") {
  LockThreads t;
  const ProcessIndex process = t.s.definitions.threads()[t.a].process;
  // Five threads hold it in turn while one waits.
  int64_t now = 100;
  std::vector<ThreadIndex> owners;
  owners.reserve(5);
  for (uint32_t i = 0; i < 5; ++i) owners.push_back(t.s.thread(process, 20 + i));
  t.lock(owners[0], 0, 10);
  t.s.enter(t.b, 20, "pthread_mutex_lock", {kLock});
  for (size_t i = 0; i < owners.size(); ++i, now += 100) {
    t.unlock(owners[i], now);
    if (i + 1 < owners.size()) t.lock(owners[i + 1], now, now);
  }
  t.s.exit(t.b, now);
  const Json row = lock_of(t.s);
  CHECK(row.at("waited_for").size() == 5);
  const std::string text = Viewed(t.s).text("locks");
  CHECK(text.find("180 ns while it was had by others (2)\n") != std::string::npos);
  CHECK(text.find("100 ns while nobody was seen to have it\n") != std::string::npos);
}
