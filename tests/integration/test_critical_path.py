"""Compares critical paths of programs whose paths are known with what the programs measure themselves."""
import collections
import os
import subprocess
import unittest

import cases
from command import arctrace, read, read_report
from kernel_programs import NO_KERNEL, SOURCES, whole
from tracing import TracedTest

# Computes for argument 2 ms of its own CPU time as often as it is told, in one of several shapes (argument 1).
# Prints the CPU time in ns that each role took: "ROLE NS". A thread computes only when those sleep that are to
# wait for it; otherwise the path could bypass it.
PROGRAM = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "asleep.h"

static long ms;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int* received;  // how many bytes the first process has got; shared with its child
static int tids[3];    // of the threads that are about to take the mutex
static int threads_begun;

static long long cpu(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}
static void compute(const char* role) {
  const long long begin = cpu();
  while (cpu() - begin < ms * 1000000) {
    volatile int x = 0;
    for (int i = 0; i < 20000; ++i) x += i;
  }
  dprintf(2, "%s %lld\n", role, cpu() - begin);
}
static void wait_for_sleep(int tid) { wait_for_sleep_in(tid, -1); }
// The first process reads: it has all bytes that were sent, and sleeps.
static void wait_for_reader(int bytes) {
  while (__atomic_load_n(received, __ATOMIC_ACQUIRE) != bytes) usleep(1000);
  wait_for_sleep(getppid());
}
static void receive(int from) {
  char byte;
  while (read(from, &byte, 1) == 1) __atomic_fetch_add(received, 1, __ATOMIC_RELEASE);
}
static pid_t child(const char* role) {
  const int grandparent = getppid();
  const pid_t pid = fork();
  if (pid != 0) return pid;
  wait_for_sleep(getppid());
  wait_for_sleep(grandparent);  // a shell that waits
  compute(role);
  _exit(0);
}
static void join_children(void) { while (wait(NULL) > 0) { } }

static void* hold(void* role) {
  const int number = __atomic_fetch_add(&threads_begun, 1, __ATOMIC_RELAXED);
  __atomic_store_n(&tids[number], (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
  pthread_mutex_lock(&lock);
  compute(role);
  pthread_mutex_unlock(&lock);
  return NULL;
}

static void* compute_for(void* joiner) {
  wait_for_sleep(*(int*)joiner);
  compute("joined");
  return NULL;
}

int main(int count, char** arguments) {
  ms = atol(arguments[2]);
  received =
      mmap(NULL, sizeof *received, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (strcmp(arguments[1], "join") == 0) {
    child("child");
    join_children();
  } else if (strcmp(arguments[1], "convoy") == 0) {
    pthread_t threads[3];
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 3; ++i) pthread_create(&threads[i], NULL, hold, "holder");
    for (int i = 0; i < 3; ++i) {
      int tid;
      while ((tid = __atomic_load_n(&tids[i], __ATOMIC_ACQUIRE)) == 0) usleep(1000);
      wait_for_sleep(tid);
    }
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
  } else if (strcmp(arguments[1], "threads") == 0) {
    int self = (int)syscall(SYS_gettid);
    for (int i = 0; i < 2; ++i) {
      pthread_t thread;
      pthread_create(&thread, NULL, compute_for, &self);
      pthread_join(thread, NULL);
    }
  } else if (strcmp(arguments[1], "full") == 0) {
    int ends[2];
    char page[4096] = {0};
    (void)!pipe(ends);
    const int size = fcntl(ends[1], F_SETPIPE_SZ, sizeof page);
    if (fork() == 0) {
      for (int i = 0; i < 3; ++i) {
        wait_for_sleep(getppid());
        compute("consumer");
        for (int got = 0; got < size;) got += (int)read(ends[0], page, sizeof page);
      }
      _exit(0);
    }
    for (int i = 0; i < 4; ++i) {  // the first one finds room
      for (int put = 0; put < size; put += sizeof page) (void)!write(ends[1], page, sizeof page);
    }
    join_children();
  } else if (strcmp(arguments[1], "pipeline") == 0) {
    int ends[2];
    (void)!pipe(ends);
    if (fork() == 0) {
      for (int i = 0; i < 3; ++i) {
        wait_for_reader(i);
        compute("producer");
        (void)!write(ends[1], "x", 1);
      }
      _exit(0);
    }
    close(ends[1]);
    receive(ends[0]);
    join_children();
  } else if (strcmp(arguments[1], "sleep") == 0) {
    usleep(ms * 1000);
  } else if (strcmp(arguments[1], "network") == 0) {
    struct sockaddr_storage name;
    socklen_t size = sizeof name;
    memset(&name, 0, sizeof name);
    name.ss_family = AF_INET;
    const int server = socket(AF_INET, SOCK_STREAM, 0);
    bind(server, (struct sockaddr*)&name, 16);
    listen(server, 1);
    getsockname(server, (struct sockaddr*)&name, &size);
    if (fork() == 0) {
      const int client = socket(AF_INET, SOCK_STREAM, 0);
      connect(client, (struct sockaddr*)&name, 16);
      for (int i = 0; i < 3; ++i) {
        wait_for_reader(i);
        compute("sender");
        (void)!write(client, "x", 1);
      }
      _exit(0);
    }
    receive(accept(server, NULL, NULL));
    join_children();
  } else {
    const int file = open("synced", O_CREAT | O_WRONLY | O_TRUNC, 0600);
    for (int i = 0; i < ms; ++i) {
      (void)!write(file, arguments[0], strlen(arguments[0]));
      fsync(file);
    }
  }
  return 0;
}
"""


@unittest.skipIf(NO_KERNEL, NO_KERNEL or "")
class CriticalPathTest(TracedTest):
    def setUp(self):
        super().setUp()
        (self.directory / "shapes.c").write_text(PROGRAM)
        subprocess.run(["gcc", "-O1", "-pthread", f"-I{SOURCES}", "shapes.c", "-o", "shapes"], cwd=self.directory,
                       check=True)

    def path_of(self, *command, options=()):
        """(rows, wall, what the program says of each role). The rows add up to the wall time, which is the
        summary's; nothing is lost."""
        done = whole(self, lambda: self.record(*command, options=("--kernel=bpf", *options)))
        self.trace = done.trace
        report = read_report(done.trace, "critical-path")
        rows = report["critical_path"]
        self.assertEqual(sum(row["ns"] for row in rows), report["wall_ns"])
        self.assertEqual(report["wall_ns"], read_report(done.trace, "summary")["wall_ns"])
        said = {}
        for line in done.stderr.splitlines():
            words = line.split()
            if len(words) == 2 and words[1].isdigit():
                said[words[0]] = said.get(words[0], 0) + int(words[1])
        return rows, report["wall_ns"], said

    def time(self, rows, **wanted):
        """The time of the rows that have these members."""
        return sum(row["ns"] for row in rows
                   if all(row[key] == value for key, value in wanted.items()))

    def tids(self, rows, least_ns):
        """The threads that run for so long on the path, each perhaps in several parts."""
        times = collections.Counter()
        for row in rows:
            times[row["tid"]] += row["ns"] if row["state"] == "running" else 0
        return [tid for tid, ns in times.items() if ns > least_ns]

    def check_computed(self, shape, role, times):
        rows, _, said = self.path_of(self.directory / "shapes", shape, "20")
        # All of that time is on the path, as running; the program's start adds more.
        self.assertGreaterEqual(self.time(rows, state="running"), said[role] * 0.98)
        self.assertGreaterEqual(said[role], times * 20_000_000)
        return rows

    @cases.in_gate
    def test_fork_and_join(self):
        rows = self.check_computed("join", "child", 1)
        self.assertEqual({row["process"] for row in rows}, {"shapes"})
        # One is the child's, and before and after it comes the parent's.
        self.assertGreaterEqual(len({row["tid"] for row in rows}), 2)

    @cases.in_gate
    def test_lock_convoy(self):
        rows = self.check_computed("convoy", "holder", 3)
        self.assertGreaterEqual(len(self.tids(rows, 15_000_000)), 3)

    def test_pipeline(self):
        self.check_computed("pipeline", "producer", 3)

    def test_thread_that_is_joined(self):
        rows = self.check_computed("threads", "joined", 2)
        self.assertGreaterEqual(len(self.tids(rows, 15_000_000)), 2)

    def test_full_pipe(self):
        """A writer waits for the reader."""
        self.check_computed("full", "consumer", 3)

    def test_loopback(self):
        """The sender's own soft interrupt wakes the receiver."""
        self.check_computed("network", "sender", 3)

    def test_sleep(self):
        rows, wall, _ = self.path_of(self.directory / "shapes", "sleep", "200")
        self.assertGreaterEqual(self.time(rows, state="timer"), 190_000_000)
        self.assertGreater(wall, 200_000_000)
        slept = [row for row in rows if row["state"] == "timer"]
        self.assertEqual([row["path"][-1] for row in slept], ["usleep"])
        of = read_report(self.trace, "critical-path", "--of", "usleep")
        self.assertEqual(sum(row["ns"] for row in of["critical_path"]), of["wall_ns"])
        call = read_report(self.trace, "slowest", "-F", "usleep")["slowest"][0]
        self.assertEqual(of["wall_ns"], call["delta_ns"])

    def test_shell_waits_for_its_children(self):
        shapes = self.directory / "shapes"
        rows, _, _ = self.path_of(
            "sh", "-c", f"{shapes} join 20 & {shapes} join 20 & wait; {shapes} join 20")
        # Of the two that run at the same time, only the last one is on the path.
        self.assertGreaterEqual(self.time(rows, process="shapes", state="running"), 2 * 20_000_000 * 0.98)
        # The processes that the shell waits for are there instead of its waiting.
        self.assertNotIn("wait", {row["state"] for row in rows if row["process"] == "sh"})
        text = read("report", self.trace)
        self.assertIn("depended on", text)

    def test_disk(self):
        if os.major(os.stat(self.directory).st_dev) == 0:
            self.skipTest("the directory for temporary files is on no block device")
        rows, _, _ = self.path_of(self.directory / "shapes", "disk", "30", options=("--block-io",))
        self.assertGreater(self.time(rows, state="disk"), 0)
        self.assertIn("fsync", {row["path"][-1] for row in rows if row["state"] == "disk"})

    @cases.in_gate
    def test_wrong_uses(self):
        plain = self.record("true")
        for arguments, line in (
                ((plain.trace, "--view=critical-path"), "record with --kernel"),
                ((plain.trace, "--of", "f"), "--of does not apply to --view=summary"),
                ((plain.trace, "--view=critical-path", "--of", ""), "empty pattern")):
            done = arctrace("report", *arguments)
            self.assertEqual(done.returncode, 2)
            self.assertEqual(len(done.stderr.splitlines()), 1)
            self.assertIn(line, done.stderr)


if __name__ == "__main__":
    cases.main()
