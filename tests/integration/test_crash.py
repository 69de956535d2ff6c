"""Programs that a signal ends: which of their threads it was, without the kernel's records."""

import re
import subprocess

import cases
from command import read, read_report
from tracing import TracedTest

# Two threads wait, and one crashes; or the first argument says another end.
CRASHES = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_barrier_t all_begun;
static const char* how;
static int* volatile nowhere;

static void bad(void) {
  printf("%d\n", gettid());
  fflush(stdout);
  if (strcmp(how, "abort") == 0) abort();
  if (strcmp(how, "term") == 0) kill(getpid(), SIGTERM);
  *nowhere = 1;
}

static void work(void) { bad(); }

static void* waits(void* unused) {
  pthread_barrier_wait(&all_begun);
  pause();
  return unused;
}

static void* crashes(void* unused) {
  pthread_barrier_wait(&all_begun);
  usleep(100000);  /* until the others wait */
  work();
  return unused;
}

int main(int argc, char** argv) {
  pthread_t thread;
  how = argv[argc - 1];
  if (strcmp(how, "alone") == 0) work();
  pthread_barrier_init(&all_begun, NULL, 3);
  pthread_create(&thread, NULL, waits, NULL);
  pthread_create(&thread, NULL, waits, NULL);
  pthread_create(&thread, NULL, crashes, NULL);
  return pthread_join(thread, NULL);
}
"""


class Crash(TracedTest):
    def crash(self, how, *front):
        """The traced run, the lines of the summary about the crash, and the JSON of it."""
        program = self.directory / "server"
        subprocess.run(["gcc", "-g", "-O0", "-finstrument-functions", "-pthread", "-x", "c", "-", "-o", program],
                       input=CRASHES, text=True, check=True)
        done = self.record(*front, program, how)
        text = read("report", done.trace)
        section = re.search(r"(?m)^Where it was when signal \d+ \(.*\) came\n((?:  .*\n)+)", text)
        self.assertIsNotNone(section, text)
        return done, section[1], read_report(done.trace, "summary")["crash"]

    def check_likely(self, how, signal, path, because, *front):
        done, section, crash = self.crash(how, *front)
        tid = int(done.stdout)
        self.assertEqual((crash["signal"], crash["tid"], crash["is_likely"], crash["because"]),
                         (signal, tid, True, because), section)
        self.assertEqual(crash["path"], path)
        self.assertEqual(crash["last_call"], "strcmp")
        self.assertIn("which thread got it is not recorded: record --kernel --signals does", section)
        self.assertRegex(section, rf"  likely thread server \d+/{tid}: {' > '.join(path)}; last call: strcmp, ended .* "
                                  r"before\n    because ")
        self.assertEqual(section.count(f"/{tid}: "), 1)
        return done, section

    @cases.in_gate
    def test_a_fault(self):
        """The only thread, the only one that does not wait, also if a shell tells the signal; source lines."""
        done, _ = self.check_likely("alone", 11, ["main", "work", "bad"], "only")
        self.assertEqual(done.status, -11)
        done, section = self.check_likely("fault", 11, ["crashes", "work", "bad"], "not_waiting")
        self.assertIn("because it is the only one of 4 that was in no call that waits\n", section)
        self.assertRegex(read("report", "--lines", done.trace), r"likely thread server .* > bad \(.*:\d+\)")
        self.check_likely("fault", 11, ["crashes", "work", "bad"], "not_waiting", "sh", "-c", '"$0" "$1"; exit $?')

    def test_abort(self):
        self.check_likely("abort", 6, ["crashes", "work", "bad", "abort"], "aborts")

    def test_a_signal_from_outside(self):
        """Any thread may get it."""
        _, section, crash = self.crash("term")
        self.assertNotIn("likely", section)
        self.assertEqual(crash, {"signal": 15})


if __name__ == "__main__":
    cases.main()
