"""Programs that a signal ends: which of their threads it was, without the kernel's records."""

import re
import signal
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

    def check_likely(self, how, number, path, because, *front):
        done, section, crash = self.crash(how, *front)
        tid = int(done.stdout)
        self.assertEqual((crash["signal"], crash["tid"], crash["is_likely"], crash["because"]),
                         (number, tid, True, because), section)
        self.assertEqual(crash["path"], path)
        self.assertEqual(crash["last_call"], "strcmp")
        self.assertIn("which thread got it is not recorded: record --kernel --signals does", section)
        self.assertRegex(section, rf"  likely thread server \d+/{tid}: {' > '.join(path)}; last call: strcmp, ended .* "
                                  r"before the end\n    because ")
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

    def test_several_that_may_have_got_it(self):
        """A thread that computes on is as likely as the one that got it: it goes on while the process is taken down."""
        program = self.directory / "busy"
        subprocess.run(["gcc", "-g", "-O0", "-finstrument-functions", "-pthread", "-x", "c", "-", "-o", program], text=True,
                       check=True, input="""
            #include <pthread.h>
            #include <unistd.h>
            static volatile int sum;
            static void step(void) { ++sum; }
            static void* computes(void* none) { for (;;) step(); return none; }
            static void* crashes(void* none) { usleep(20000); return (void*)(long)*(volatile int*)none; }
            int main(void) {
              pthread_t threads[2];
              pthread_create(&threads[0], 0, computes, 0);
              pthread_create(&threads[1], 0, crashes, 0);
              pthread_join(threads[1], 0);
              return 0;
            }""")
        done = self.record(program, options=("-b", "256M"))
        self.assertEqual(done.status, -signal.SIGSEGV)
        text = read("report", done.trace)
        self.assertRegex(text, r"  it is one of the first 2: they were in no call that waits\n"
                               r"(  busy \d+/\d+: (computes( > step)?|crashes)(; .*)?\n){2}")
        crash = read_report(done.trace, "summary")["crash"]
        self.assertEqual(crash.keys(), {"signal", "possible_threads"})
        self.assertEqual(2, len(crash["possible_threads"]))
        if "record --kernel --signals" in text:
            self.assertIn("       arctrace record --kernel --signals -o", text)

    @cases.in_gate
    def test_a_program_that_a_script_runs(self):
        """The script goes on, and its exit status is another one."""
        program = self.directory / "server"
        subprocess.run(["gcc", "-g", "-O0", "-finstrument-functions", "-pthread", "-x", "c", "-", "-o", program],
                       input=CRASHES, text=True, check=True)
        script = '"$0" alone; yes | head -n 1; sh -c "exit 3"; true'
        done = self.record("sh", "-c", script, program)
        self.assertEqual(done.status, 0)
        text = read("report", done.trace)
        self.assertRegex(text, r"\nOther programs that did not end by exit\(\)\n"
                               r"  server \d+: by a signal, or by a system call of its own\n")
        others = read_report(done.trace, "summary")["other_crashes"]
        self.assertEqual(["server", "yes"], [crash["name"] for crash in others])
        done = self.record("sh", "-c", script, program, options=("--kernel=bpf", "--signals"))
        if done.status == 2:
            self.skipTest(done.stderr)
        self.assertRegex(read("report", done.trace), r"\nOther programs that a signal ended\n"
                         r"  server \d+: signal 11 \(Segmentation fault\) in main > work > bad\n\n")
        [crash] = read_report(done.trace, "summary")["other_crashes"]
        self.assertEqual((crash["name"], crash["signal"], crash["path"]), ("server", 11, ["main", "work", "bad"]))
        ends = {}
        def add(rows):
            for row in rows:
                ends.setdefault(row["name"], []).extend(row["exits"])
                add(row["children"])
        add(read_report(done.trace, "processes")["processes"])
        self.assertEqual(ends["server"], ["signal 11"])
        self.assertEqual(ends["yes"], ["signal 13"])
        self.assertIn("3", ends["sh"])
        self.assertNotIn("not known", sum(ends.values(), []))


if __name__ == "__main__":
    cases.main()
