"""record --clock=coarse and --clock=order: the same calls in the same order as with exact times, in smaller records;
and times that are as right as the clock word is often stored."""

import json
import re
import signal
import subprocess

import cases
from command import LIBRARY, arctrace, read, read_dump, read_info, read_report, run, start_arctrace
from states import wait_until
from test_costs import INCLUDE
from tracing import TracedTest

# Threads call functions, events and libc, each a known number of times, while a timer's handler interrupts them; then
# a function computes for as long as it says.
PROGRAM = r"""
#include <arctrace/arctrace.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
enum { THREADS = 3, ROUNDS = 5000 };
#define PLAIN __attribute__((no_instrument_function))
#if defined(__x86_64__)
#define LONG __asm__ volatile(".nops 64" ::: "memory");
#else
#define LONG __asm__ volatile("" ::: "memory");
#endif
static uint32_t event;
static long handled;
static PLAIN double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}
void leaf(void) { LONG }
void inner(void) { leaf(); leaf(); LONG }
void outer(int i) { inner(); leaf(); if (i % 100 == 0) arctrace_write(event, &i, sizeof i); LONG }
void in_handler(void) { LONG LONG }
static PLAIN void handle(int number) { (void)number; in_handler(); __atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED); }
static PLAIN void* work(void* unused) {
  for (int i = 0; i < ROUNDS; ++i) { outer(i); if (i % 10 == 0) free(strdup("word")); }
  return unused;
}
void computes(long rounds) { for (long i = 0; i < rounds; ++i) __asm__ volatile("" ::: "memory"); LONG }
PLAIN int main(int argc, char** argv) {
  const struct arctrace_field fields[] = {{"i", ARCTRACE_FIELD_I32}};
  event = arctrace_define_event("round", 0, fields, 1);
  struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  const struct itimerval timer = {{0, 500}, {0, 500}};
  setitimer(ITIMER_REAL, &timer, NULL);
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; ++i) pthread_create(&threads[i], NULL, work, NULL);
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  const struct itimerval none = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &none, NULL);
  const double begin = now_ns();
  for (int i = 0; i < 10; ++i) computes(20000000);
  printf("{\"handled\": %ld, \"computed_ns\": %.0f}\n", handled, now_ns() - begin);
  if (argc > 1) { puts("waits"); fflush(stdout); for (;;) { outer(1); usleep(1000); } }
  return 0;
}
"""
THREADS, ROUNDS = 3, 5000
CALLS = {"outer": THREADS * ROUNDS, "inner": THREADS * ROUNDS, "leaf": 3 * THREADS * ROUNDS,
         "strdup": THREADS * ROUNDS // 10, "computes": 10}
HOOKS = {"-finstrument-functions": (["-finstrument-functions"], []), "patched": ([], ["-P", "."])}


class ClockWord(TracedTest):
    def build(self, hooks):
        directory = self.place(hooks.strip("-"))
        (directory / "program.c").write_text(PROGRAM, encoding="ascii")
        run("cc", "-O2", "-g", "-fno-inline", "-fno-optimize-sibling-calls", "-D_GNU_SOURCE", *HOOKS[hooks][0],
            f"-I{INCLUDE}", "program.c", "-o", "program", LIBRARY, f"-Wl,-rpath,{LIBRARY.parent}", "-include", "unistd.h",
            cwd=directory, check=True)
        return directory

    def assert_calls(self, recorded):
        """The program's calls, counted, and each in the place where it belongs."""
        facts = json.loads(recorded.stdout.splitlines()[0])
        calls = recorded.calls()
        self.assertEqual({name: calls[name] for name in CALLS}, CALLS)
        self.assertEqual(calls["in_handler"], facts["handled"])
        events = [record for record in recorded.records("--type=EVENT")]
        self.assertEqual(len(events), THREADS * ROUNDS // 100)
        stacks = {}
        for record in recorded.records("--type=ENTER,EXIT"):
            stack = stacks.setdefault(record["tid"], [])
            if record["type"] == "EXIT":
                stack.pop()
                continue
            name = record.get("function", record.get("name"))
            # A handler may run anywhere; what it calls is whole within that.
            callers = [caller for caller in stack if caller != "in_handler"]
            if name == "inner":
                self.assertEqual(callers[-1:], ["outer"])
            elif name == "leaf":
                self.assertIn(callers[-1:], (["outer"], ["inner"]))
            stack.append(name)
        self.assertFalse(any(stacks.values()), stacks)
        return facts

    @cases.in_gate
    def test_calls_and_times(self):
        """The same program with each clock, by hooks of each way."""
        for hooks, (_, options) in HOOKS.items():
            directory = self.build(hooks)
            sizes = {}
            for clock in ("exact", "coarse", "order"):
                for scope in ("adaptive", "shared"):
                    with self.subTest(hooks=hooks, clock=clock, scope=scope):
                        recorded = self.record("./program", directory=directory,
                                               options=(f"--clock={clock}", f"--scope={scope}", "-b", "256M", *options))
                        self.assertEqual(recorded.status, 0, recorded.stderr)
                        self.assertIn(" 0 lost", recorded.stderr)
                        facts = self.assert_calls(recorded)
                        sizes[clock, scope] = recorded.trace.stat().st_size
                        self.assert_times(recorded, clock, facts)
                        # To patch functions takes long enough to be told, and stands apart.
                        if hooks == "patched":
                            self.assertIn("arctrace itself took", recorded.read("report"))
            # A call takes 16 bytes of blocks instead of 24.
            self.assertLess(sizes["coarse", "adaptive"], 0.8 * sizes["exact", "adaptive"])

    def assert_times(self, recorded, clock, facts):
        session = recorded.info()["session"]
        if clock == "exact":
            self.assertNotIn("stamps", session)
            return
        self.assertEqual(session["stamps"], clock)
        self.assertEqual(session["resolution_ns"], {"coarse": 20_000, "order": 1_000_000}[clock])
        self.assertLessEqual(session["mean_age_ns"], session["longest_step_ns"])
        computed = next(row for row in recorded.functions() if row["name"] == "computes")
        # Each of its ten calls is wrong by a step at each end.
        self.assertLessEqual(abs(computed["cum_ns"] - facts["computed_ns"]), 20 * session["longest_step_ns"] + 2e6)
        for view in ("summary", "tree", "flat"):
            self.assertRegex(recorded.read("report", f"--view={view}"),
                             r"(?m)^(coarse times|order, and no times): their clock was to move every ")

    @cases.in_gate
    def test_views_that_need_times(self):
        trace = self.directory / "order"
        self.assertEqual(arctrace("record", "--clock=order", "-o", trace, "--", "true").returncode, 0)
        # Where the output has no place for it, standard error says so.
        for command in (("export", "--to=folded", trace, "-o", self.directory / "folded"), ("diff", trace, trace)):
            done = arctrace(*command)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("order, and no times: their clock was to move every 1.00 ms", done.stderr)
        for options, name in ((("--view=slowest", "-F", "*"), "--view=slowest"),
                              (("--view=histogram", "-F", "*"), "--view=histogram"), (("--corrected",), "--corrected")):
            done = arctrace("report", trace, *options)
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, rf"has no times of single calls, which {name} needs: record without --clock=order")

    @cases.in_gate
    def test_options_that_exclude_each_other(self):
        for options, words in ((("--clock=coarse", "--kernel"), "records of the kernel have exact times"),
                               (("--clock=order", "--syscalls"), "records of the kernel have exact times"),
                               (("--clock-resolution=1ms",), "--clock-resolution needs --clock=coarse or --clock=order"),
                               (("--clock-cpu=0",), "--clock-cpu needs --clock=coarse"),
                               (("--clock=coarse", "--clock-resolution=10ns"), "from 1us to 1s"),
                               (("--clock=coarse", "--clock-cpu=100000"), "--clock-cpu: this process can't run on CPU"),
                               (("--clock=order", "-t", "1ms"), "-t needs the times of calls"),
                               (("--clock=cheap",), "--clock")):
            done = arctrace("record", *options, "-o", self.directory / "none", "--", "true")
            self.assertEqual(done.returncode, 2, options)
            self.assertIn(words, done.stderr)
            self.assertFalse((self.directory / "none").exists())

    def test_resolution(self):
        """A CPU of its own stores the time as often as it is asked to."""
        trace = self.directory / "fine"
        done = arctrace("record", "--clock=coarse", "--clock-resolution=2us", "--clock-cpu=0", "-o", trace, "--",
                        "sleep", "0.2")
        self.assertEqual(done.returncode, 0, done.stderr)
        moved = [record for record in read_dump(trace) if record["type"] == "CLOCK_WORD"]
        self.assertEqual(len(moved), 1)
        self.assertGreater(moved[0]["stores"], 1000)

    def test_flight_recorder(self):
        directory = self.build("patched")
        recorded = self.record("./program", directory=directory,
                               options=("--clock=coarse", "--mode=overwrite", "-b", "1M", "-P", "."))
        self.assertEqual(recorded.status, 0, recorded.stderr)
        self.assertEqual(recorded.info()["session"]["stamps"], "coarse")

    def test_filters(self):
        """Filtered calls take another path in the program."""
        directory = self.build("-finstrument-functions")
        recorded = self.record("./program", directory=directory, options=("--clock=coarse", "-N", "leaf"))
        self.assertEqual(recorded.status, 0, recorded.stderr)
        calls = recorded.calls()
        self.assertEqual((calls["leaf"], calls["inner"]), (0, CALLS["inner"]))

    def test_a_killed_recorder(self):
        """The time stands still; the records have their order, and are read."""
        directory = self.build("-finstrument-functions")
        with start_arctrace("record", "--clock=coarse", "-o", directory / "killed", "--", "./program", "on", cwd=directory,
                            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as recorder:
            lines = iter(recorder.stdout.readline, "")
            wait_until(lambda: next(lines) == "waits\n", "the program works")
            pid = int(run("pgrep", "-P", str(recorder.pid), "-x", "program", check=True).stdout)
            recorder.send_signal(signal.SIGKILL)
            recorder.wait()
            subprocess.run(["kill", str(pid)], check=True)
        left = re.search(r"(\S+) +drop .*left behind", read("list"))[1]
        read("recover", "-m", directory / "killed", "-o", directory / "whole", left)
        self.addCleanup(read, "destroy", left)
        self.assertGreater(read_report(directory / "whole", "flat")["summary"]["records"], 0)
        self.assertEqual(read_info(directory / "whole")["session"]["stamps"], "coarse")
        (directory / "killed").unlink()  # the file is cut off


if __name__ == "__main__":
    cases.main()
