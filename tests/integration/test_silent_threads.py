"""Threads that write no records, of programs that cannot be traced or made by system calls of a program's own, are
threads of the trace when the kernel is recorded."""

import contextlib
import itertools
import os
import pathlib
import sqlite3
import subprocess
import time
import unittest

import cases
from command import read, read_info, read_report, run, start_arctrace
from kernel_programs import ATTEMPTS, NO_KERNEL, SOURCES
from states import wait_until
from trace_checks import walk
from tracing import TracedTest

# A thread that the program makes by a system call of its own, which libc does not know.
CLONES = r"""
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static _Alignas(64) char stack[1 << 16];
static _Atomic int done;
static void work(void) {
  for (volatile long i = 0; i < 40000000; ++i) {}
  done = 1;
  for (;;) syscall(SYS_exit, 0);
}
int main(void) {
  const long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
  long made;
  void** top = (void**)(stack + sizeof stack) - 2;
  *top = (void*)work;
  __asm__ volatile("xor %%r10d, %%r10d\n\txor %%r8d, %%r8d\n\tsyscall\n\t"
                   "test %%rax, %%rax\n\tjnz 1f\n\tpop %%rax\n\tsub $8, %%rsp\n\tcall *%%rax\n\t1:"
                   : "=a"(made)
                   : "a"(SYS_clone), "D"(flags), "S"(top), "d"(0)
                   : "rcx", "r8", "r10", "r11", "memory");
  printf("%ld\n", made);
  while (!done) usleep(1000);
  usleep(1000);
  return 0;
}
"""
# Waits until its input ends.
WAITS = r"""
#include <unistd.h>
__attribute__((noinline)) static int waits(void) {
  char byte;
  return read(0, &byte, 1) != 0;
}
int main(void) { return waits(); }
"""
WORKS = (SOURCES / "works.c").read_text(encoding="ascii")
STATIC = ("-static", "-pthread")


@unittest.skipIf(NO_KERNEL, NO_KERNEL or "")
class SilentThreadsTest(TracedTest):
    def build(self, source, *options):
        program = self.directory / "works"
        done = run("gcc", "-O1", "-x", "c", "-", "-o", program, *options, input=source)
        if done.returncode != 0 and "-static" in options:
            self.skipTest("no static libc")
        self.assertEqual(done.returncode, 0, done.stderr)
        return program

    def record_program(self, *command):
        """Returns the trace, and what the program printed."""
        trace = self.directory / "silent.data"
        trace.unlink(missing_ok=True)
        return trace, read("record", "--kernel=bpf", "-o", trace, "--", *command)

    def threads_of(self, trace, name):
        """The rows of the threads with this name. All views have them, with the same sums."""
        threads = [thread for thread in read_report(trace, "threads")["threads"] if thread["name"] == name]
        tids = {thread["tid"] for thread in threads}
        roots = {thread["tid"]: thread["root"] for thread in read_report(trace, "tree")["threads"]
                 if thread["name"] == name}
        self.assertEqual(set(roots), tids)
        exported = self.directory / "silent.db"
        read("export", "--to=sqlite", "--force", "-o", exported, trace)
        with contextlib.closing(sqlite3.connect(exported)) as database:
            in_file = {tid: (cpu, off, unknown) for tid, cpu, off, unknown in database.execute(
                "SELECT tid, cpu_ns, off_cpu_ns, not_known_ns FROM threads WHERE name = ? AND cpu_ns IS NOT NULL",
                (name,))}
        self.assertEqual(set(in_file), tids)
        for thread in threads:
            parts = (thread["running_ns"], thread["ready_ns"] + thread["blocked_ns"], thread.get("not_known_ns", 0))
            root = roots[thread["tid"]]
            in_tree = (root["cpu_ns"], root["off_cpu_ns"], root.get("not_known_ns", 0))
            self.assertEqual(in_tree, in_file[thread["tid"]])
            # States include what arctrace does in the thread, which is in no sum.
            own_ns = sum(node["overhead_ns"] for node, _ in walk(root) if node["name"] == "[arctrace]")
            self.assertEqual(sum(parts), sum(in_tree) + own_ns)
            for in_states, in_sum in zip(parts, in_tree):
                self.assertLessEqual(in_sum, in_states)
        self.assertIn(name, read("report", trace))
        running = {}
        for row in read_report(trace, "critical-path")["critical_path"]:
            if row["state"] == "running":
                running[row["tid"]] = running.get(row["tid"], 0) + row["ns"]
        for thread in threads:
            self.assertLessEqual(running.get(thread["tid"], 0), thread["running_ns"])
        return threads

    def assert_counted(self, trace, processes, threads):
        """Each thread counts once, though the kernel's records name threads that have written records, too."""
        for summary in (read_report(trace, "summary")["summary"], read_info(trace)["summary"]):
            self.assertEqual((summary["processes"], summary["threads"]), (processes, threads))
        self.assertRegex(read("report", trace), rf"{processes} process(es)?, {threads} threads?\n")

    @cases.in_gate
    def test_threads_that_write_records_count_once(self):
        trace, _ = self.record_program(self.build(WORKS, "-pthread"))
        self.assert_counted(trace, 1, 3)
        self.assertEqual(len(read_report(trace, "threads")["threads"]), 3)

    def check_static(self, *command):
        """A static program's threads, recorded by a command, have the CPU time that the kernel counts, in one of
        several recordings, because time that a virtual machine's host takes is in none of its counts."""
        tried = []
        for _ in range(ATTEMPTS):
            trace, printed = self.record_program(*command)
            threads = self.threads_of(trace, "works")
            self.assertEqual(len(threads), 3)
            self.assertEqual(len({thread["pid"] for thread in threads}), 1)
            self.assertIn(threads[0]["pid"], [thread["tid"] for thread in threads])
            tried.append((sum(thread["running_ns"] for thread in threads), int(printed)))
            if 0.97 * tried[-1][1] <= tried[-1][0] <= 1.03 * tried[-1][1] + 1e9 / os.sysconf("SC_CLK_TCK"):
                return trace
        self.fail(f"CPU time by the trace and by the kernel: {tried}")

    @cases.in_gate
    def test_a_static_program(self):
        trace = self.check_static(self.build(WORKS, *STATIC))
        self.assert_counted(trace, 1, 3)

    @cases.in_gate
    def test_a_static_child_of_a_traced_program(self):
        program = self.build(WORKS, *STATIC)
        trace = self.check_static("sh", "-c", f"{program}; exit 0")
        # The shell has records, and so has its child before the exec.
        self.assertIn("sh", {thread["name"] for thread in read_report(trace, "threads")["threads"]})

    @cases.in_gate
    @unittest.skipIf(os.uname().machine != "x86_64", "its system call is x86-64's")
    def test_a_thread_that_libc_does_not_know(self):
        trace, printed = self.record_program(self.build(CLONES))
        threads = {thread["tid"]: thread for thread in self.threads_of(trace, "works")}
        made = threads[int(printed)]
        self.assertNotEqual(made["pid"], made["tid"])
        self.assertGreater(made["running_ns"], 0)
        self.assertEqual(len(threads), 2)
        self.assert_counted(trace, 1, 2)

    @cases.in_gate
    def test_other_programs_stay_out(self):
        other = subprocess.Popen(["sh", "-c", "while :; do :; done"])
        try:
            trace, _ = self.record_program("sh", "-c", "for i in 1 2 3 4 5; do /bin/true; done")
        finally:
            other.kill()
            other.wait()
        threads = read_report(trace, "threads")["threads"]
        self.assertLessEqual({thread["name"] for thread in threads}, {"sh", "true"})
        self.assertNotIn(other.pid, [thread["tid"] for thread in threads])

    @cases.in_gate
    @unittest.skipIf(os.uname().machine != "x86_64", "no process is joined there")
    def test_children_of_the_recorder_stay_out(self):
        """The recorder has children while a process joins, which the kernel's records name, too."""
        joined = subprocess.Popen(["sh", "-c", "while :; do sleep 0.01; done"])
        trace = self.directory / "joined.data"
        try:
            read("record", "--kernel=bpf", "--duration=300ms", "-o", trace, "-p", joined.pid)
        finally:
            joined.kill()
            joined.wait()
        self.assertEqual({thread["name"] for thread in read_report(trace, "threads")["threads"]}, {"sh", "sleep"})

    def record_waiting(self, program, ends):
        """The trace of a program that waits when it is joined, and then ends; or waits for longer."""
        trace = self.directory / "waits.data"
        trace.unlink(missing_ok=True)
        waiting = subprocess.Popen([program], stdin=subprocess.PIPE)
        stat = pathlib.Path(f"/proc/{waiting.pid}/stat")
        try:
            wait_until(lambda: ") S " in stat.read_text(encoding="utf-8"), "it waits")
            with start_arctrace("record", "--kernel=bpf", *(() if ends else ("--duration=500ms",)), "-o", trace, "-p",
                                waiting.pid, stderr=subprocess.PIPE, text=True) as recorder:
                self.assertIn("joined process", recorder.stderr.readline())
                if ends:
                    time.sleep(0.3)
                    waiting.stdin.close()
                recorder.communicate()
                self.assertEqual(recorder.returncode, 0)
        finally:
            waiting.stdin.close()
            self.assertEqual(waiting.wait(), 0)
        return trace

    @cases.in_gate
    @unittest.skipIf(os.uname().machine != "x86_64", "no process is joined there")
    def test_a_program_that_waits_when_it_is_joined(self):
        """A joined thread is there from then on, whether it writes records later or none, and is known to wait."""
        for hooks, ends in itertools.product(((), ("-finstrument-functions",)), (True, False)):
            with self.subTest(hooks=hooks, ends=ends):
                trace = self.record_waiting(self.build(WAITS, *hooks), ends)
                read("check", trace)
                (thread,) = self.threads_of(trace, "works")
                others = thread["running_ns"] + thread["ready_ns"] + thread.get("not_known_ns", 0)
                self.assertGreater(thread["blocked_ns"], 2 * others)
                self.assert_counted(trace, 1, 1)
                for view in ("flat", "threads"):
                    gaps = [(gap["reason"], gap["tid"], gap["from_ns"]) for gap in read_report(trace, view)["gaps"]]
                    self.assertIn(("before it was joined", thread["tid"], None), gaps)


if __name__ == "__main__":
    cases.main()
