"""Compares the view of locks with sums over the lock calls that `dump` has, and with what a program does by its
construction."""

import collections
import functools
import pathlib
import re
import subprocess
import sys

import cases
from command import read, read_dump, read_report
from tracing import TracedTest

PROGRAM = r"""
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <unistd.h>

static pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER, idle = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static sem_t tokens;
static int waiting, is_ready;
static int turn;

static void wait_for_turn(int number) {
  while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != number) usleep(100);
}

// Holds the free mutex until the thread whose turn it is then waits for it (glibc's 2).
static void hold_for(int number) {
  pthread_mutex_lock(&busy);
  __atomic_store_n(&turn, number, __ATOMIC_RELEASE);
  while (__atomic_load_n(&busy.__data.__lock, __ATOMIC_RELAXED) != 2) usleep(100);
  pthread_mutex_unlock(&busy);
}

// The second thread waits for the first one, and the third for the second, whenever they run.
static void wait_in_turn(intptr_t number) {
  wait_for_turn(number);
  if (number > 0) {
    pthread_mutex_lock(&busy);
    pthread_mutex_unlock(&busy);
  }
  if (number < 2) hold_for(number + 1);
  if (number == 2) __atomic_store_n(&turn, 3, __ATOMIC_RELEASE);
  wait_for_turn(3);
}

static void* work(void* number) {
  wait_in_turn((intptr_t)number);
  for (int i = 0; i < 20; ++i) {
    pthread_mutex_lock(&busy);
    usleep(500);
    pthread_mutex_unlock(&busy);
    if (i % 5 == 0) {
      pthread_rwlock_wrlock(&table);
      usleep(200);
    } else {
      pthread_rwlock_rdlock(&table);
    }
    pthread_rwlock_unlock(&table);
  }
  pthread_mutex_lock(&guard);
  ++waiting;
  while (!is_ready) pthread_cond_wait(&ready, &guard);
  pthread_mutex_unlock(&guard);
  sem_wait(&tokens);
  return NULL;
}

int main(void) {
  pthread_t threads[3];
  sem_init(&tokens, 0, 0);
  for (intptr_t i = 0; i < 3; ++i) pthread_create(&threads[i], NULL, work, (void*)i);
  for (int i = 0; i < 7; ++i) {
    pthread_mutex_lock(&idle);
    pthread_mutex_unlock(&idle);
  }
  for (;;) {
    pthread_mutex_lock(&guard);
    if (waiting == 3) break;
    pthread_mutex_unlock(&guard);
    usleep(1000);
  }
  is_ready = 1;
  pthread_cond_broadcast(&ready);
  pthread_mutex_unlock(&guard);
  usleep(2000);
  for (int i = 0; i < 3; ++i) sem_post(&tokens);
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
  return 0;
}
"""

# The main thread holds the mutex until the other one waits for it (glibc's 2), and long after that.
WAITED_FOR = r"""
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void* other(void* unused) {
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  return unused;
}

int main(void) {
  pthread_t thread;
  pthread_mutex_lock(&mutex);
  pthread_create(&thread, NULL, other, NULL);
  while (__atomic_load_n(&mutex.__data.__lock, __ATOMIC_RELAXED) != 2) usleep(1000);
  usleep(300000);
  pthread_mutex_unlock(&mutex);
  return pthread_join(thread, NULL);
}
"""

# A thread locks two mutexes again that it holds: one refuses that, one is recursive. Then the main thread locks each.
TAKEN_AGAIN = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t checks = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static void* other(void* unused) {
  pthread_mutex_lock(&checks);
  if (pthread_mutex_lock(&checks) != EDEADLK) return &checks;
  pthread_mutex_unlock(&checks);
  pthread_mutex_lock(&recursive);
  pthread_mutex_lock(&recursive);
  pthread_mutex_unlock(&recursive);
  pthread_mutex_unlock(&recursive);
  return unused;
}

int main(void) {
  pthread_t thread;
  void* result;
  pthread_create(&thread, NULL, other, NULL);
  pthread_join(thread, &result);
  pthread_mutex_t* const all[] = {&checks, &recursive};
  for (int i = 0; i < 2; ++i) {
    pthread_mutex_lock(all[i]);
    pthread_mutex_unlock(all[i]);
  }
  return result != NULL;
}
"""

# Three threads wait until the process ends: for a mutex that the main thread holds, for a condition, for a semaphore.
NEVER_ENDS = r"""
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t had = PTHREAD_MUTEX_INITIALIZER, guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static union {
  sem_t semaphore;
  uint32_t words[2];  // glibc's value and number of those that wait
} token;
static int waits;

static void* for_mutex(void* unused) {
  pthread_mutex_lock(&had);
  return unused;
}

static void* for_condition(void* unused) {
  pthread_mutex_lock(&guard);
  waits = 1;
  pthread_cond_wait(&never, &guard);
  return unused;
}

static void* for_semaphore(void* unused) {
  sem_wait(&token.semaphore);
  return unused;
}

static int all_wait(void) {
  pthread_mutex_lock(&guard);
  const int result = waits;
  pthread_mutex_unlock(&guard);
  return result && __atomic_load_n(&had.__data.__lock, __ATOMIC_RELAXED) == 2 &&
         __atomic_load_n(&token.words[1], __ATOMIC_RELAXED) == 1;
}

int main(void) {
  const struct timespec pause = {0, 200 * 1000 * 1000};
  void* (*const all[])(void*) = {for_mutex, for_condition, for_semaphore};
  pthread_t thread;
  sem_init(&token.semaphore, 0, 0);
  pthread_mutex_lock(&had);
  for (int i = 0; i < 3; ++i) pthread_create(&thread, NULL, all[i], NULL);
  while (!all_wait()) usleep(1000);
  nanosleep(&pause, NULL);
  _exit(0);
}
"""

DEADLOCK = r"""
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both_have_one;

static int is_waited_for(pthread_mutex_t* mutex) {
  return __atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED) == 2;
}

static void* kill_both(void* unused) {
  while (!is_waited_for(&a) || !is_waited_for(&b)) usleep(1000);
  kill(getpid(), SIGKILL);
  return unused;
}

static void* other(void* unused) {
  pthread_mutex_lock(&b);
  pthread_barrier_wait(&both_have_one);
  pthread_mutex_lock(&a);
  return unused;
}

int main(void) {
  pthread_t thread;
  pthread_barrier_init(&both_have_one, NULL, 2);
  pthread_create(&thread, NULL, kill_both, NULL);
  pthread_create(&thread, NULL, other, NULL);
  pthread_mutex_lock(&a);
  pthread_barrier_wait(&both_have_one);
  pthread_mutex_lock(&b);
  return 0;
}
"""

# Calls each function of the view, and prints the addresses of its locks by their names; functions that may fail to take
# a lock are also called once when they do.
EVERY_FUNCTION = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <threads.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spinlock;
static sem_t semaphore;
static mtx_t mtx;
static cnd_t cnd;
static int ready;

static void* wake(void* unused) {
  pthread_mutex_lock(&mutex);
  ready = 1;
  pthread_cond_signal(&condition);
  pthread_mutex_unlock(&mutex);
  mtx_lock(&mtx);
  ready = 2;
  cnd_signal(&cnd);
  mtx_unlock(&mtx);
  return unused;
}

int main(void) {
  const struct timespec past = {1, 0};
  pthread_t thread;
  int failed = 0;
  pthread_spin_init(&spinlock, 0);
  sem_init(&semaphore, 0, 0);
  mtx_init(&mtx, mtx_timed);
  cnd_init(&cnd);
  printf("mutex %p\ncondition %p\nrwlock %p\nspinlock %p\nsemaphore %p\nmtx %p\ncnd %p\n", (void*)&mutex, (void*)&condition,
         (void*)&rwlock, (void*)&spinlock, (void*)&semaphore, (void*)&mtx, (void*)&cnd);

  // The main thread has both mutexes until it waits for the other one, and then again.
  mtx_lock(&mtx);
  failed += mtx_trylock(&mtx) != thrd_success;
  failed += mtx_timedlock(&mtx, &past) != thrd_success;
  failed += cnd_timedwait(&cnd, &mtx, &past) != thrd_success;
  cnd_broadcast(&cnd);
  pthread_mutex_lock(&mutex);
  failed += pthread_mutex_trylock(&mutex) != 0;
  failed += pthread_mutex_timedlock(&mutex, &past) != 0;
  failed += pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &past) != 0;
  failed += pthread_cond_timedwait(&condition, &mutex, &past) != 0;
  failed += pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &past) != 0;
  pthread_cond_broadcast(&condition);
  pthread_create(&thread, NULL, wake, NULL);
  while (!ready) pthread_cond_wait(&condition, &mutex);
  pthread_mutex_unlock(&mutex);
  failed += pthread_mutex_trylock(&mutex) != 0;
  pthread_mutex_unlock(&mutex);

  pthread_rwlock_rdlock(&rwlock);
  failed += pthread_rwlock_trywrlock(&rwlock) != 0;
  failed += pthread_rwlock_timedwrlock(&rwlock, &past) != 0;
  failed += pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, &past) != 0;
  pthread_rwlock_unlock(&rwlock);
  pthread_rwlock_wrlock(&rwlock);
  failed += pthread_rwlock_tryrdlock(&rwlock) != 0;
  failed += pthread_rwlock_timedrdlock(&rwlock, &past) != 0;
  failed += pthread_rwlock_clockrdlock(&rwlock, CLOCK_MONOTONIC, &past) != 0;
  pthread_rwlock_unlock(&rwlock);

  pthread_spin_lock(&spinlock);
  failed += pthread_spin_trylock(&spinlock) != 0;
  pthread_spin_unlock(&spinlock);

  sem_post(&semaphore);
  sem_wait(&semaphore);
  failed += sem_timedwait(&semaphore, &past) != 0;
  failed += sem_clockwait(&semaphore, CLOCK_MONOTONIC, &past) != 0;

  while (ready < 2) cnd_wait(&cnd, &mtx);
  mtx_unlock(&mtx);
  pthread_join(thread, NULL);
  return failed == 17 ? 0 : 1;
}
"""

# Locks of all kinds, each locked by two threads.
NAMED = r"""
#include <pthread.h>
#include <mutex>

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t table[4];
namespace app {
struct Pool {
  int users;
  struct { long count; std::mutex lock; } free;
  std::mutex lock;
  static std::mutex all;
};
std::mutex Pool::all;
Pool pool;
namespace { std::mutex hidden; }
}
struct Heap { int count; std::mutex lock; };
extern "C" void lock_in_library();
static std::mutex& in_function() {
  static std::mutex local;
  return local;
}
extern "C" __attribute__((noinline)) void use_heap(Heap* heap) {
  heap->lock.lock();
  ++heap->count;
  heap->lock.unlock();
}
static void* work(void* heap) {
  for (pthread_mutex_t* lock : {&log_lock, &table[2]}) {
    pthread_mutex_lock(lock);
    pthread_mutex_unlock(lock);
  }
  for (std::mutex* lock : {&app::pool.free.lock, &app::pool.lock, &app::Pool::all, &app::hidden, &in_function()}) {
    std::lock_guard<std::mutex> guard(*lock);
  }
  use_heap(static_cast<Heap*>(heap));
  lock_in_library();
  return nullptr;
}
int main() {
  pthread_t thread;
  Heap* heap = new Heap;
  pthread_create(&thread, nullptr, work, heap);
  work(heap);
  return pthread_join(thread, nullptr);
}
"""
LIBRARY = r"""
#include <pthread.h>
static pthread_mutex_t lib_lock = PTHREAD_MUTEX_INITIALIZER;
extern "C" void lock_in_library() {
  pthread_mutex_lock(&lib_lock);
  pthread_mutex_unlock(&lib_lock);
}
"""
PLAIN_NAMES = {"log_lock", "app::Pool::all", "app::(anonymous namespace)::hidden", "in_function()::local"}
MEMBERS = {"table[2]", "app::pool.free.lock", "app::pool.lock"}

# The view's functions, by the reader's table.
LOCK_FUNCTIONS = set(re.findall(
    r'\{"(\w+)", \{LockKind',
    (pathlib.Path(__file__).resolve().parents[2] / "reader/analysis/function_kinds.cpp").read_text(encoding="utf-8")))
MAY_FAIL = {name for name in LOCK_FUNCTIONS
            if re.search("(try|timed|clock)(rd|wr)?lock", name)}


def locks_of(function, named):
    """The locks of a call of EVERY_FUNCTION, as names whose addresses it prints."""
    name, _, does = function.removeprefix("pthread_").partition("_")
    lock = {"cond": "condition", "spin": "spinlock", "sem": "semaphore"}.get(name, name)
    waits = name in ("cond", "cnd") and does.endswith("wait")
    mutex = {"condition": "mutex", "cnd": "mtx"}.get(lock)
    return [named[lock], named[mutex]] if waits else [named[lock]]


ACQUIRE = {"pthread_mutex_lock": False, "pthread_rwlock_wrlock": False,
           "pthread_rwlock_rdlock": True}  # whether it is shared
RELEASE = ("pthread_mutex_unlock", "pthread_rwlock_unlock")


class Account:
    def __init__(self):
        self.wakes = self.acquired = self.waits = self.waited_ns = self.longest_ns = 0
        self.holds = []  # (start, stop, thread, shared)
        self.calls = []  # calls that took it: (start, stop, thread, shared)
        self.waits_of = []  # the calls that count as waits


def accounts(records):
    """{address: what the lock calls of one process did}"""
    locks = collections.defaultdict(Account)
    calls = collections.defaultdict(list)
    held = {}  # (address, thread): (start, shared)
    acquired = []

    def release(address, thread, now):
        start, shared = held.pop((address, thread))
        locks[address].holds.append((start, now, thread, shared))

    for record in records:
        thread, now = (record["pid"], record["tid"]), record["time_ns"]
        args = record.get("locks") or record.get("args")
        if record["type"] == "ENTER":
            calls[thread].append([record["function"], now, None])
        if record["type"] in ("ENTER", "ARGUMENTS") and args:
            calls[thread][-1][2] = args = [int(str(arg), 0) for arg in args
                                           if str(arg).startswith("0x")]
            if record["function"] in RELEASE:
                release(args[0], thread, now)
            elif record["function"] == "pthread_cond_wait":
                release(args[1], thread, now)
        elif record["type"] == "EXIT" and calls[thread]:
            function, start, args = calls[thread].pop()
            if function in ACQUIRE:
                locks[args[0]].acquired += 1
                acquired.append((args[0], thread, start, now, ACQUIRE[function]))
                held[args[0], thread] = now, ACQUIRE[function]
            elif function in ("pthread_cond_broadcast", "sem_post"):
                locks[args[0]].wakes += 1
            elif function in ("pthread_cond_wait", "sem_wait"):
                lock = locks[args[0]]
                lock.acquired += 1
                lock.waits += 1
                lock.waited_ns += now - start
                lock.longest_ns = max(lock.longest_ns, now - start)
                if function == "pthread_cond_wait":
                    held[args[1], thread] = now, False
    for address, thread, start, stop, shared in acquired:
        lock = locks[address]
        lock.calls.append((start, stop, thread, shared))
        if any(hold[1] >= start and hold[0] <= stop and hold[2] != thread
               and not (shared and hold[3]) and hold[1] <= stop for hold in lock.holds):
            lock.waits += 1
            lock.waited_ns += stop - start
            lock.longest_ns = max(lock.longest_ns, stop - start)
            lock.waits_of.append((start, stop, thread, shared))
    return locks


def overlap(hold, call):
    """How long the call waited for the hold to end."""
    ended_in_it = call[0] < hold[1] <= call[1]
    if hold[2] == call[2] or hold[3] and call[3] or not ended_in_it:
        return 0
    return hold[1] - max(hold[0], call[0])


def divided(call, holds):
    """A wait's time by the holder of the lock, None: nobody. If several hold it at once, the one that has held it
    longest counts."""
    inside = [hold for hold in holds if overlap(hold, call)]
    times = sorted({call[0], call[1]} | {time for hold in inside for time in hold[:2] if call[0] < time < call[1]})
    waited = collections.Counter()
    for begin, end in zip(times, times[1:]):
        having = [hold for hold in inside if hold[0] <= begin and end <= hold[1]]
        waited[max(having, key=lambda hold: hold[1])[2] if having else None] += end - begin
    return waited


class LocksTest(TracedTest):
    def traced(self, source, *options):
        program = self.directory / "program"
        subprocess.run(["gcc", "-O1", "-pthread", "-x", "c", "-o", program, "-"], input=source,
                       text=True, check=True)
        return self.record(program, options=options)

    def test_against_the_calls(self):
        for options in (), ("-a",), ("--scope=shared",):
            with self.subTest(options=options):
                self.check_against_the_calls(self.traced(PROGRAM, *options))

    def check_against_the_calls(self, done):
        self.assertEqual(done.status, 0, done.stderr)
        expected = accounts(read_dump(done.trace))
        report = read_report(done.trace, "locks")
        self.assertEqual((report["calls_without_lock"], report["holds_without_end"]), (0, 0))
        self.assertEqual(report["deadlocks"], [])
        found = {int(row["address"], 16): row for row in report["locks"]}
        self.assertEqual(set(found), set(expected))
        for address, lock in expected.items():
            row = found[address]
            self.assertEqual((row["wakes"], row["acquired"], row["waits"], row["waited_ns"],
                              row["holds"], row["held_ns"]),
                             (lock.wakes, lock.acquired, lock.waits, lock.waited_ns,
                              len(lock.holds),
                              sum(hold[1] - hold[0] for hold in lock.holds)), row)
            if lock.waits:
                self.assertEqual(row["longest_wait"]["duration_ns"], lock.longest_ns)
            if lock.holds:
                longest_ns = max(hold[1] - hold[0] for hold in lock.holds)
                self.assertEqual(row["longest_hold"]["duration_ns"], longest_ns)
                # If several are as long, it may be any of them.
                longest = next(hold for hold in lock.holds if hold[1] - hold[0] == longest_ns and
                               hold[0] == row["longest_hold"]["start_ns"])
                self.assertEqual((row["longest_hold"]["pid"], row["longest_hold"]["tid"]),
                                 longest[2])
                self.assertEqual(
                    {(share["pid"], share["tid"]): share["waited_ns"]
                     for share in row["longest_hold_waiters"]},
                    {call[2]: overlap(longest, call) for call in lock.calls
                     if overlap(longest, call)})
            self.assertEqual((row["open_waits"], row["open_holds"]), (0, 0))
            waited = sum((divided(call, lock.holds) for call in lock.waits_of), collections.Counter())
            if row["kind"] in ("condition", "semaphore"):
                waited[None] = lock.waited_ns
            found_waited = collections.Counter({None: row["waited_for_nobody_ns"]})
            for share in row["waited_for"]:
                found_waited[share["pid"], share["tid"]] += share["waited_ns"]
            self.assertEqual(+found_waited, +waited)
            self.assertEqual(found_waited.total(), row["waited_ns"])
            times = [share["waited_ns"] for share in row["waited_for"]]
            self.assertEqual(times, sorted(times, reverse=True))
        self.check_by_construction(report["locks"])

    def check_by_construction(self, rows):
        by_kind = collections.defaultdict(list)
        for row in rows:
            by_kind[row["kind"]].append(row)
        self.assertEqual({kind: len(rows) for kind, rows in by_kind.items()},
                         {"mutex": 3, "rwlock": 1, "condition": 1, "semaphore": 1})
        busy, idle = (
            next(row for row in by_kind["mutex"] if row["name"] == f"{name} in program")
            for name in ("busy", "idle"))
        # Each thread locks it 20 times, and more locks make sure that there are waits.
        self.assertEqual((busy["acquired"], busy["holds"]), (64, 64))
        self.assertGreaterEqual(busy["held_ns"], 60 * 500_000)
        self.assertGreaterEqual(busy["waits"], 2)
        self.assertNotEqual(busy["holder"]["tid"], busy["longest_wait"]["tid"])
        self.assertGreater(len(busy["waited_for"]), 1)
        for share in busy["longest_hold_waiters"]:
            self.assertNotEqual(share["tid"], busy["longest_hold"]["tid"])
        self.assertEqual((idle["acquired"], idle["waits"], idle["waited_ns"], idle["holds"]),
                         (7, 0, 0, 7))
        condition = by_kind["condition"][0]
        self.assertEqual((condition["waits"], condition["wakes"], condition["holds"]), (3, 1, 0))
        self.assertEqual(by_kind["semaphore"][0]["wakes"], 3)

    def test_text(self):
        done = self.traced(WAITED_FOR)
        text = read("report", "--view=locks", done.trace)
        self.assertRegex(text, r"(?m)^ +Waited m?s +Waits +Held +Holds  Lock$")
        self.assertRegex(text, r"(?m)^ +[0-9.]+ +1 +[0-9.]+ m?s +2  mutex mutex in program of ")
        thread = r"program \d+/\d+"
        self.assertRegex(text, f"(?m)^      longest wait: [0-9.]+ m?s by {thread} in no recorded")
        self.assertRegex(text, f"(?m)^      longest hold: [0-9.]+ m?s by {thread} in no recorded")
        self.assertRegex(text, f"(?m)^ +meanwhile waited: [0-9.]+ m?s by {thread} in no recorded")
        self.assertRegex(
            text, f"(?m)^      waited for\n        [0-9.]+ m?s while it was had by {thread} in ")
        self.assertIn("--nest-libcall", text)

    def test_what_never_ends(self):
        """A hold or wait that does not end counts up to the end of the process, and is marked."""
        done = self.traced(NEVER_ENDS)
        self.assertEqual(done.status, 0, done.stderr)
        rows = {row["name"]: row for row in read_report(done.trace, "locks")["locks"]}
        pause_ns = next(row["cum_ns"] for row in read_report(done.trace, "flat")["functions"]
                        if row["name"] == "nanosleep")
        had, guard, never, token = (rows[f"{name} in program"] for name in ("had", "guard", "never", "token"))
        for row in had, never, token:
            self.assertEqual((row["waits"], row["open_waits"], row["longest_wait"]["open"]), (1, 1, True), row)
            self.assertGreater(row["waited_ns"], pause_ns)
            self.assertEqual(row["longest_wait"]["duration_ns"], row["waited_ns"])
        self.assertEqual((had["acquired"], never["acquired"], token["acquired"]), (1, 0, 0))
        # The main thread holds the mutex from before the other thread waits to the end.
        self.assertEqual((had["holds"], had["open_holds"], had["longest_hold"]["open"]), (1, 1, True))
        self.assertGreater(had["held_ns"], had["waited_ns"])
        self.assertEqual(had["longest_hold"]["tid"], had["longest_hold"]["pid"])
        self.assertEqual([(share["tid"], share["waited_ns"]) for share in had["waited_for"]],
                         [(had["longest_hold"]["pid"], had["waited_ns"])])
        self.assertEqual([(share["tid"], share["waited_ns"]) for share in had["longest_hold_waiters"]],
                         [(had["longest_wait"]["tid"], had["waited_ns"])])
        # The wait released the mutex.
        self.assertEqual((guard["open_waits"], guard["open_holds"]), (0, 0))
        text = read("report", "--view=locks", done.trace)
        self.assertRegex(text, r"mutex had in program.* \[open: 1 wait, 1 hold\] of \d+\n"
                               r" +longest wait: [0-9.]+ ms \[open\] by ")
        self.assertRegex(text, r"(?m)condition never in program \[open: 1 wait\] of ")
        # The same is true in a time range that ends before.
        until_ns = max(row["longest_wait"]["start_ns"] for row in (had, never, token)) + pause_ns // 2
        cut = read_report(done.trace, "locks", "-r", f"~{until_ns}ns")
        open_waits = {row["name"] for row in cut["locks"] if row["open_waits"] == 1}
        self.assertLessEqual({"had in program", "never in program", "token in program"}, open_waits)

    def names(self, trace):
        """The names of all locks."""
        return {row["name"] for row in read_report(trace, "locks")["locks"]}

    def build(self, *options, name="program"):
        """NAMED, with its library, in the test's directory."""
        run = functools.partial(subprocess.run, cwd=self.directory, text=True, check=True)
        run(["g++", *options, "-O1", "-shared", "-fPIC", "-x", "c++", "-", "-o", "libnamed.so"], input=LIBRARY)
        run(["g++", *options, "-O1", "-pthread", "-x", "c++", "-", "-o", name, "-Wl,-rpath,$ORIGIN", "-L.", "-lnamed"],
            input=NAMED)
        return self.directory / name

    @cases.in_gate
    def test_names_of_locks(self):
        """Static variables, members, elements, those of a library: of all kinds of programs. They are in the trace, as
        far as symbols tell them; debug information tells more, also from its own file, and for `archive`."""
        library = {"lib_lock in libnamed.so"}
        for kind in ([], ["-no-pie"], ["-g"], ["-g", "-no-pie"]):
            with self.subTest(kind=kind):
                program = self.build(*kind)
                done = self.record(program, options=("--nest-libcall",))
                self.assertEqual(done.status, 0, done.stderr)
                symbols = {f"{name} in program" for name in PLAIN_NAMES}
                members = {f"{name} in program" for name in MEMBERS}
                named = self.names(done.trace)
                self.assertLessEqual(symbols | library, named)
                self.assertEqual(members <= named, "-g" in kind, named)
                archived = self.directory / "archived"
                read("archive", "--force", done.trace, "-o", archived)
                if "-g" in kind:
                    debug = self.directory / "program.debug"
                    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
                    subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", program], check=True)
                    self.assertLessEqual(symbols | members | library, self.names(done.trace))
                    recorded = self.record(program, options=("--nest-libcall",), trace="of-stripped.data")
                    self.assertLessEqual(symbols | members | library, self.names(recorded.trace))
                program.unlink()  # or another one is at its path
                self.assertLessEqual(symbols | library, self.names(done.trace))
                program.write_bytes(pathlib.Path(sys.executable).read_bytes())
                self.assertLessEqual(symbols | library, self.names(done.trace))
                self.assertEqual(members <= self.names(archived), "-g" in kind)

    def test_locks_without_a_name(self):
        """On the heap, and of a program without symbols: by the function that was the first to lock them."""
        program = self.build()
        done = self.record(program, options=("-P", ".", "-Z", "1"))
        text = read("report", "--view=locks", done.trace)
        self.assertRegex(text, r"mutex 0x[0-9a-f]+, first in use_heap\b")
        subprocess.run(["strip", program], check=True)
        done = self.record(program)
        self.assertRegex(read("report", "--view=locks", done.trace), r"mutex program\+0x[0-9a-f]+ ")

    def test_taken_again_by_its_owner(self):
        """The second call's result is known with -a only, but each mutex was held twice."""
        for options in (), ("-a",):
            with self.subTest(options=options):
                done = self.traced(TAKEN_AGAIN, *options)
                self.assertEqual(done.status, 0, done.stderr)
                locks = read_report(done.trace, "locks")["locks"]
                self.assertEqual([row["holds"] for row in locks], [2, 2], locks)
                self.assertEqual([row["waits"] for row in locks], [0, 0], locks)

    def test_a_deadlock(self):
        done = self.traced(DEADLOCK)
        report = read_report(done.trace, "locks")
        self.assertEqual(len(report["deadlocks"]), 1, report)
        ring = report["deadlocks"][0]
        self.assertEqual(len({row["tid"] for row in ring}), 2)
        self.assertEqual({row["lock"] for row in ring},
                         {row["address"] for row in report["locks"]})
        text = read("report", "--view=locks", done.trace)
        self.assertEqual(len(re.findall(r" waits for \w+ in program, which ", text)), 2, text)

    def test_every_function_has_its_locks(self):
        """Locks are recorded also where the entry does not take the fast path."""
        for options in (), ("-R", "*"), ("-t", "1ns"), ("-F", "*"), ("--scope=shared",), ("-a",):
            with self.subTest(options=options):
                done = self.traced(EVERY_FUNCTION, *options)
                self.assertEqual(done.status, 0, done.stderr)
                named = dict(line.split() for line in done.stdout.splitlines())
                records = [record for record in read_dump(done.trace) if record.get("function") in LOCK_FUNCTIONS]
                found = {record["function"]: record["locks"] for record in records if record.get("locks")}
                with_args = {record["function"]: record["args"] for record in records if record["type"] == "ARGUMENTS"}
                # No function has both.
                self.assertEqual(set(found) & set(with_args), set())
                for function, args in with_args.items():
                    locks = locks_of(function, named)
                    self.assertEqual(args[:len(locks)], locks, function)
                if options != ("-a",):
                    self.assertEqual(with_args, {})
                self.assertEqual(set(found) | set(with_args), LOCK_FUNCTIONS)
                for function, locks in found.items():
                    self.assertEqual(locks, locks_of(function, named), function)
                results = {record["function"] for record in records if record["type"] == "RESULT"}
                self.assertLessEqual(MAY_FAIL, results)
                if options not in (("-R", "*"), ("-a",)):
                    self.assertEqual(results, MAY_FAIL)
                self.check_every_function(read_report(done.trace, "locks"), named)

    def check_every_function(self, report, named):
        self.assertEqual(report["calls_without_lock"], 0)
        rows = {row["address"]: row for row in report["locks"]}
        self.assertEqual(set(rows), set(named.values()))
        rows = {name: rows[address] for name, address in named.items()}
        # Calls that failed took nothing.
        self.assertEqual({name: rows[name]["acquired"] for name in ("mutex", "rwlock", "spinlock", "mtx")},
                         {"mutex": 3, "rwlock": 2, "spinlock": 1, "mtx": 2})
        self.assertEqual(rows["condition"]["wakes"], 2)
        self.assertEqual(rows["cnd"]["wakes"], 2)
        self.assertEqual(rows["semaphore"]["wakes"], 1)
        for name in "mutex", "mtx":
            self.assertGreater(rows[name]["holds"], rows[name]["acquired"])  # waits count, too
        self.assertEqual(rows["rwlock"]["holds"], 2)

    def test_locks_are_arguments(self):
        """Exports have the locks too."""
        done = self.traced(EVERY_FUNCTION)
        named = dict(line.split() for line in done.stdout.splitlines())
        lines = read("export", "--to=ndjson", "-o", "-", done.trace)
        self.assertIn(f'"args":["{named["cnd"]}","{named["mtx"]}"]', lines)
        rows = read_report(done.trace, "invocations")["invocations"]
        waits = [row for row in rows if row["name"] == "pthread_cond_timedwait"]
        self.assertEqual([row["args"] for row in waits], [[named["condition"], named["mutex"]]])

    def test_other_arguments(self):
        done = self.traced(PROGRAM, "-A", "pthread_mutex_*@arg2")
        report = read_report(done.trace, "locks")
        self.assertEqual({row["kind"] for row in report["locks"]}, {"rwlock", "condition", "semaphore", "mutex"})
        self.assertGreater(report["calls_without_lock"], 100)
        text = read("report", "--view=locks", done.trace)
        self.assertIn(" lock calls of which the lock is not known: ", text)


if __name__ == "__main__":
    cases.main()
