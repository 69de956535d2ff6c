"""Recordings that lack something in a known way. What every view, export and the library show of a function is either
right, or comes with what is missing: never less without a word."""

import contextlib
import csv
import gzip
import json
import mmap
import os
import pathlib
import signal
import sqlite3
import struct
import subprocess
import unittest

import cases
from command import ARCTRACE, arctrace, read, read_dump, read_report, run, start_arctrace
from kernel_programs import NO_KERNEL
from served_trace import Server
from states import wait_until
from tmux_terminal import Terminal
from tracing import TracedTest

# For each line of input it calls a function so many times, and answers; at its end it prints how often in all.
STEPS = """
#include <stdio.h>
#include <stdlib.h>
static volatile int sum;
__attribute__((noinline)) static void step(int n) { for (int i = 0; i < 40; ++i) sum += n * i; }
int main(int count, char** arguments) {
  const int each = atoi(arguments[count - 1]);
  int line = 0, calls = 0;
  puts(getenv("ARCTRACE_SESSION") ? getenv("ARCTRACE_SESSION") : "-");
  fflush(stdout);
  while ((line = getchar()) != EOF) {
    for (int i = 0; i < each; ++i, ++calls) step(i);
    puts("");
    fflush(stdout);
  }
  printf("%d\\n", calls);
  return 0;
}
"""
# Calls step 100 times, then loses records for the cause that its argument names, by the API of the library that its
# tracer has loaded. Prints how often it called step.
LOSES = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
enum { THREADS = 12 };
static volatile int sum;
static int calls;
static pthread_barrier_t all;
static int there[2], back[2];
__attribute__((noinline)) static void step(int n) { for (int i = 0; i < 40; ++i) sum += n * i; }
static void* steps(void* unused) {
  for (int i = 0; i < 10; ++i) step(i);
  pthread_barrier_wait(&all);  // each keeps its slot until all have called
  return unused;
}
static void* answer(void* unused) {
  char byte;
  while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1) {}
  return unused;
}
static void lose(const char* why) {
  uint32_t (*define_event)(const char*, uint32_t, const void*, uint32_t) = dlsym(RTLD_DEFAULT, "arctrace_define_event");
  uint32_t (*define_name)(const char*) = dlsym(RTLD_DEFAULT, "arctrace_define_name");
  void (*instant)(uint32_t) = dlsym(RTLD_DEFAULT, "arctrace_instant");
  void (*write_event)(uint32_t, const void*, size_t) = dlsym(RTLD_DEFAULT, "arctrace_write");
  void* (*reserve)(uint32_t, size_t) = dlsym(RTLD_DEFAULT, "arctrace_reserve");
  pthread_t threads[THREADS];
  static char big[1 << 20];
  char byte = 0;
  if (strcmp(why, "too_big") == 0) write_event(define_event("happened", 0, NULL, 0), big, sizeof big);
  if (strcmp(why, "nested") == 0) for (int i = 0; i < 50; ++i) reserve(define_event("happened", 0, NULL, 0), 8);
  if (strcmp(why, "no_slot") == 0) {
    pthread_barrier_init(&all, NULL, THREADS);
    for (int i = 0; i < THREADS; ++i) pthread_create(&threads[i], NULL, steps, NULL);
    for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
    calls += 10 * THREADS;
  }
  if (strcmp(why, "definitions") == 0) {
    for (int i = 0; i < 20000; ++i) {
      char name[80];
      snprintf(name, sizeof name, "a name that takes more room than there is, number %d", i);
      instant(define_name(name));
    }
  }
  if (strcmp(why, "kernel") == 0 && pipe(there) == 0 && pipe(back) == 0) {
    puts("ready"), fflush(stdout), getchar();
    pthread_create(threads, NULL, answer, NULL);
    for (int i = 0; i < 40000; ++i) {
      if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) break;
    }
    close(there[1]);
    pthread_join(threads[0], NULL);
    puts("done"), fflush(stdout);
  }
}
int main(int count, char** arguments) {
  for (; calls < 100; ++calls) step(calls);
  lose(arguments[count - 1]);
  printf("%d\n", calls);
  return 0;
}
"""
# Where the control page has a process' next identity, and the one from which on none is given.
PROCESS_NEXT, NO_IDENTITY = 4096 + 320, 0x7FFF0000
# Prints what the library says of a recording: how often step was called, by its sums and by its calls, and all that it
# has about what is missing.
LIBRARY_PROGRAM = """
import json, sys
import arctrace
trace = arctrace.open(*sys.argv[1:])
profile = trace.profile()
(group,) = profile
with trace.calls(values=False) as calls:
    listed = sum(call.name == "step" and call.is_call for call in calls)
steps = [function for function in group.functions if function.name == "step"]
print(json.dumps({"sums": sum(function.calls for function in steps), "calls": listed, "facts": trace.facts,
                  "functions": group.functions, "missing": profile.missing}))
"""
SMALL_BUFFER = f"{max(1, (os.cpu_count() + 1) // 2)}M"  # 512 KiB for each CPU
VIEWS = ("summary", "tree", "flat", "arcs", "kinds", "flow", "invocations", "histogram", "slowest", "graph", "locks",
         "processes", "log-rt")
EXPORTS = ("perfetto", "chrome", "html", "speedscope", "pprof", "callgrind", "csv", "ndjson", "sqlite")


def nodes(tree):
    yield tree
    for child in tree["children"]:
        yield from nodes(child)


class LacksTest(TracedTest):
    CHECKS_VIEWS = False

    @classmethod
    def build(cls, directory, *options):
        program = directory / "steps"
        run("gcc", "-O1", "-g", *options, "-x", "c", "-", "-o", program, input=STEPS, check=True)
        return program

    def rounds(self, *options, each=1000, rounds=10, between=None, hooks=("-finstrument-functions",),
               own_directory=None):
        """Records so many steps; before each, `between` is called with the step's number, the program's session and the
        recorder. Returns the trace and how often step was called."""
        directory = own_directory or self.directory
        trace = directory / "arctrace.data"
        with start_arctrace("record", "--no-libcall", *options, "-o", trace, "--", self.build(self.directory, *hooks),
                            each, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True) as recorder:
            session = recorder.stdout.readline().strip()
            for number in range(rounds):
                if between is not None:
                    between(number, session, recorder)
                recorder.stdin.write("\n")
                recorder.stdin.flush()
                recorder.stdout.readline()
            recorder.stdin.close()
            calls = int(recorder.stdout.read())
            self.said = recorder.stderr.read()
        self.assertEqual(calls, each * rounds)
        return trace, calls

    # ---- What is shown ----

    def shown(self, view, report):
        """How often step was called, by this view; None if the view does not say."""
        def of(rows, key="calls"):
            return sum(row[key] for row in rows if row["name"] == "step")
        if view == "tree":
            return sum(of(nodes(thread["root"])) for thread in report["threads"])
        if view == "flat":
            return of(report["functions"])
        if view == "arcs":
            return of(report["arcs"])
        if view == "invocations":
            return sum(row["name"] == "step" for row in report["invocations"])
        if view == "flow":
            return sum(row["type"] == "ENTER" and row.get("name") == "step" for row in report["flow"])
        if view == "slowest":
            return report["calls"]
        return None

    def exported(self, to, files):
        """(how often step was called, or None; the content)"""
        out = self.directory / f"out.{to}"
        read("export", "--force", "--partial", f"--to={to}", "-o", out, *files)
        content = out.read_bytes()
        if to == "pprof":
            content = gzip.decompress(content)
        calls = None
        if to == "csv":
            with open(out, encoding="utf-8") as file:
                calls = sum(row["type"] == "call" and row["name"] == "step" for row in csv.DictReader(file))
        elif to == "ndjson":
            rows = map(json.loads, content.decode().splitlines())
            calls = sum(row["type"] == "call" and row["name"] == "step" for row in rows)
        elif to == "sqlite":
            with contextlib.closing(sqlite3.connect(out)) as base:
                calls = base.execute("SELECT sum(calls) FROM function_sums WHERE name = 'step'").fetchone()[0] or 0
        elif to == "chrome":
            calls = sum(event.get("ph") in ("X", "B") and event["name"] == "step"
                        for event in json.loads(content)["traceEvents"])
        elif to == "html":
            content = b""  # a page has data that have tests of their own
        out.unlink()
        return calls, content

    def in_library(self, files):
        """(how often step was called by its sums, by its calls; whether the recording was finished; all that it
        says)"""
        python, package = os.environ.get("ARCTRACE_PYTHON"), os.environ.get("ARCTRACE_PYTHON_PACKAGE")
        if python is None:
            return None
        done = run(python, "-B", "-c", LIBRARY_PROGRAM, *files, env={**os.environ, "PYTHONPATH": package}, check=True)
        said = json.loads(done.stdout)
        return said["sums"], said["calls"], said["facts"]["finished"], done.stdout

    @staticmethod
    def on_page(files):
        """(how often step was called, all that the page has about what is missing)"""
        server = Server("--partial", *files)
        try:
            server.wait_whole()
            summary, totals = server.api("summary"), server.api("totals")
            steps = sum(row[1] for row in totals["totals"] if summary["functions"][row[0]][0] == "step")
            return steps, json.dumps([summary, totals])
        finally:
            server.close()

    def on_screen(self, files, said):
        """Waits until tui says so, and quits it."""
        terminal = Terminal(200, 50)
        try:
            terminal.type(f"{ARCTRACE} tui --partial {' '.join(map(str, files))}; echo status=$?")
            terminal.wait_for("[1 Summary]", said)
            terminal.press("q")
            terminal.wait_for("status=0")
        finally:
            terminal.close()

    def check(self, files, calls, said, most=None, always=False):
        """Checks all that is shown of a recording in which step was called so often, of which `most` calls are in it,
        or any number. `said`: what text, JSON and exports must say if they show fewer, or `always`."""
        files = [files] if isinstance(files, pathlib.Path) else files
        flat = self.shown("flat", read_report(files[0], "flat", *files[1:]))
        self.assertLessEqual(flat, calls)
        if most is not None:
            self.assertLessEqual(flat, most)
        is_less = always or flat < calls
        for view in VIEWS:
            about = ("-F", "step") if view in ("histogram", "slowest", "graph") else ()
            done = arctrace("report", f"--view={view}", *about, *files)
            found = arctrace("report", f"--view={view}", "--format=json", *about, *files)
            if about and done.returncode == 2 and flat == 0:
                continue  # no function matches
            self.assertEqual((done.returncode, found.returncode), (0, 0), done.stderr)
            shown = self.shown(view, json.loads(found.stdout))
            if shown is not None:
                self.assertEqual(shown, flat, view)
            if is_less:
                self.assertTrue(said in found.stdout, (view, "JSON"))
                if view != "log-rt":  # its text is for programs
                    self.assertTrue(said in done.stdout, (view, done.stdout[:2000], done.stdout[-2000:]))
        for to in EXPORTS:
            shown, content = self.exported(to, files)
            if shown is not None:
                self.assertEqual(shown, flat, to)
            if is_less and to != "html":
                self.assertTrue(said.encode() in content, to)
        if (library := self.in_library(files)) is not None:
            sums, listed, is_finished, content = library
            self.assertEqual(sums, listed)
            if is_finished:
                self.assertEqual(sums, flat)
            else:  # exports do not read the buffer of a killed recorder
                self.assertLessEqual(sums, flat)
            if is_less and is_finished:
                self.assertIn(said, content)
        steps, content = self.on_page(files)
        self.assertEqual(steps, flat)
        if is_less:
            self.assertIn(said, content)
            self.on_screen(files, said)
        if is_less and not said.startswith(("ctl", "-")):  # info describes filters in other words
            self.assertIn(said, read("info", *files) + "".join(str(record) for record in read_dump(*files, "--type=GAP"))
                          + read("info", "--format=json", *files))
        return flat

    # ---- What is missing ----

    def test_nothing(self):
        trace, calls = self.rounds()
        self.assertEqual(self.check(trace, calls, "nothing"), calls)

    @cases.in_gate
    def test_removed_files(self):
        trace, calls = self.rounds("--size-limit", "100k", "--block-size=4k", "-b", "4M", each=5000, rounds=20)
        files = sorted(trace.parent.glob("arctrace.data*"))
        self.assertGreater(len(files), 1)
        self.assertLess(self.check(files, calls, "removed"), calls)

    def test_switched_off(self):
        trace, calls = self.rounds("-P", "s*", "-Z", "1", "-b", "256k", "--block-size=4k", each=200_000, rounds=20,
                                   hooks=())
        if "switched off" in self.said:
            self.check(trace, calls, "switched off")
        else:
            self.check(trace, calls, "lost")

    @cases.in_gate
    def test_excluded_amid(self):
        def exclude(number, session, _):
            if number == 5:
                read("ctl", session, "-N", "step")
        trace, calls = self.rounds(between=exclude)
        self.assertEqual(self.check(trace, calls, "ctl -N step"), calls // 2)

    def test_class_off_amid(self):
        def switch(number, session, _):
            if number in (4, 6):
                read("ctl", session, "--off=functions" if number == 4 else "--on=functions")
        trace, calls = self.rounds(between=switch)
        self.assertEqual(self.check(trace, calls, "functions off"), calls * 8 // 10)

    def test_filter_of_time(self):
        trace, calls = self.rounds("-t", "1s")
        self.assertEqual(self.check(trace, calls, "-t 1s"), 0)

    @cases.in_gate
    def test_full(self):
        trace, calls = self.rounds("--mode=stop", "-b", "256k", "--block-size=4k", each=10_000)
        self.assertLess(self.check(trace, calls, "lost"), calls)
        sums = read_report(trace, "flat")["summary"]
        self.assertEqual(sums["records"] + sums["lost"], 2 * (calls + 1))

    def test_overwritten(self):
        trace, calls = self.rounds("--mode=overwrite", "-b", "256k", "--block-size=4k", each=10_000)
        self.assertLess(self.check(trace, calls, "overwritten"), calls)
        sums = read_report(trace, "flat")["summary"]
        self.assertEqual(sums["records"] + sums["overwritten"], 2 * (calls + 1))

    def test_snapshot(self):
        def ask(number, _, recorder):
            if number == 9:
                recorder.send_signal(signal.SIGUSR2)
                wait_until(lambda: (self.directory / "arctrace.data.1").exists(), "there is a snapshot")
        trace, calls = self.rounds("--mode=overwrite", "-b", "256k", "--block-size=4k", each=10_000, between=ask)
        snapshot = trace.with_name("arctrace.data.1")
        self.assertLess(self.check(snapshot, calls * 9 // 10, "overwritten"), calls * 9 // 10)

    def test_killed_recorder(self):
        """What the program writes after the recorder's death is in the buffer, which readers of the file read with
        it."""
        session = None

        def kill(number, its_session, recorder):
            nonlocal session
            session = its_session
            if number == 5:
                trace = self.directory / "arctrace.data"
                wait_until(lambda: trace.exists() and trace.stat().st_size > 4096, "the recorder has begun its file")
                os.kill(recorder.pid, signal.SIGKILL)
        trace, calls = self.rounds(between=kill)
        self.assertEqual(self.check(trace, calls, "nothing"), calls)
        trace.unlink()  # the file is cut off
        read("destroy", session)

    def test_full_disk(self):
        mount = self.directory / "disk"
        mount.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", mount], check=False,
                          stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("can't mount a small disk here")
        try:
            trace, calls = self.rounds(each=10_000, own_directory=mount)
            self.assertLess(self.check(trace, calls, "lost"), calls)
        finally:
            subprocess.run(["umount", "-l", mount], check=True)

    def record_losses(self, why, *options, meanwhile=None):
        """A recording of LOSES, and how often it called step."""
        program, trace = self.directory / "loses", self.directory / f"{why}.data"
        run("gcc", "-O1", "-finstrument-functions", "-pthread", "-x", "c", "-", "-o", program, input=LOSES, check=True)
        with start_arctrace("record", "--no-libcall", *options, "-o", trace, "--", program, why, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as recorder:
            if meanwhile is not None:
                self.assertEqual(recorder.stdout.readline(), "ready\n")
                meanwhile(recorder)
            printed = recorder.stdout.readline()
            said = recorder.stderr.read()
        self.assertRegex(said, rf"lost \(.*{why} ", why)
        return trace, int(printed)

    @cases.in_gate
    def test_losses_by_cause(self):
        """Losses whose cause is not a full buffer or disk."""
        for why, options in (("too_big", ()), ("nested", ()), ("no_slot", ("--slots", "4")),
                             ("definitions", ("--mode=overwrite", "-b", "64k"))):
            with self.subTest(why=why):
                trace, calls = self.record_losses(why, *options)
                shown = self.check(trace, calls, why, always=True)
                self.assertEqual(shown == calls, why in ("too_big", "nested"))
                self.assertGreater(read_report(trace, "flat")["summary"]["lost_by_cause"][why], 0)

    @unittest.skipIf(NO_KERNEL, NO_KERNEL or "")
    def test_losses_of_the_kernels(self):
        def stop_for_a_while(recorder):
            recorder.send_signal(signal.SIGSTOP)
            recorder.stdin.write("\n")
            recorder.stdin.flush()
            recorder.stdout.readline()  # the program has finished
            recorder.send_signal(signal.SIGCONT)
        trace, calls = self.record_losses("kernel", "--kernel=bpf", "-b", SMALL_BUFFER, meanwhile=stop_for_a_while)
        self.assertEqual(self.check(trace, calls, "kernel", always=True), calls)

    def test_no_identity(self):
        """A session has given all its identities: the program is not in the trace, and its losses are counted."""
        name = f"lacks-{os.getpid()}"
        path = read("create", name, "-b", "1M", "--start").strip()
        self.addCleanup(arctrace, "destroy", "--force", name)
        program = self.build(self.directory, "-finstrument-functions")

        def record():
            run(ARCTRACE, "record", "--no-libcall", f"--session={name}", "--", program, "1000", input="\n", check=True)
        record()
        with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as buffer:
            struct.pack_into("=I", buffer, PROCESS_NEXT, NO_IDENTITY)
        record()
        trace = self.directory / "identity.data"
        read("snapshot", name, "-o", trace)
        self.assertEqual(self.check(trace, 2000, "identity"), 1000)

    @unittest.skipIf(os.uname().machine != "x86_64", "no process is joined there")
    def test_joined_late(self):
        program = subprocess.Popen([self.build(self.directory, "-finstrument-functions"), "1000"],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

        def go_round():
            program.stdin.write("\n")
            program.stdin.flush()
            program.stdout.readline()
        program.stdout.readline()
        for _ in range(4):
            go_round()
        trace = self.directory / "arctrace.data"
        with start_arctrace("record", "--no-libcall", "-o", trace, "-p", program.pid, stderr=subprocess.PIPE,
                            text=True) as recorder:
            self.assertIn("joined process", recorder.stderr.readline())
            for _ in range(6):
                go_round()
            program.stdin.close()
            self.assertEqual(int(program.stdout.read()), 10_000)
            self.assertEqual(program.wait(), 0)
            program.stdout.close()
            recorder.communicate()
        self.assertEqual(self.check(trace, 10_000, "it was joined"), 6000)


if __name__ == "__main__":
    cases.main()
