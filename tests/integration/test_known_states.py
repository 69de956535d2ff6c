"""States of threads where records of the kernel's are missing: in each view running, ready, blocked and not known add up
to the time of the thread, and no time on a CPU is shown that the program did not have."""
import collections
import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
import unittest

import cases
from command import ARCTRACE, read, read_info, read_report, start_arctrace
from kernel_programs import ATTEMPTS, NO_KERNEL
from trace_checks import walk
from tracing import TracedTest

# Two threads that send each other a byte, and compute a little, as long as argument 1 says, until a line comes. Prints its session, and
# at the end what the kernel says of its CPU time, in ns.
SENDERS = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static int there[2], back[2];
static volatile int ended;
static int turns;
void __attribute__((noinline)) compute(void) { for (volatile int i = 0; i < turns; ++i) { } }
static void* answer(void* unused) {
  char byte;
  while (read(there[0], &byte, 1) == 1) { compute(); if (write(back[1], &byte, 1) != 1) break; }
  return unused;
}
static void* read_line(void* unused) {
  char byte;
  if (read(0, &byte, 1) >= 0) ended = 1;
  return unused;
}
int main(int count, char** arguments) {
  pthread_t one, two;
  char byte = 0;
  turns = atoi(arguments[count - 1]);
  if (pipe(there) != 0 || pipe(back) != 0) return 1;
  pthread_create(&one, NULL, answer, NULL);
  pthread_create(&two, NULL, read_line, NULL);
  puts(getenv("ARCTRACE_SESSION")), fflush(stdout);
  while (!ended) {
    compute();
    if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) return 1;
  }
  close(there[1]);
  pthread_join(one, NULL), pthread_join(two, NULL);
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  printf("%lld\n", (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000000LL +
                       (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000LL);
}
"""

# A shell that waits for a child while no records of the kernel's are made.
SWITCHED_OFF = f"""
sleep 0.2
{ARCTRACE} ctl "$ARCTRACE_SESSION" --off=kernel
sleep 0.6
{ARCTRACE} ctl "$ARCTRACE_SESSION" --on=kernel
sleep 0.2
"""


# Processes, one after another and in a pipe.
PROCESSES = "for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true; echo $i | cat > /dev/null; done"


# Runs argument 1 in a shell, a child by fork, and prints how long its children had a CPU, in ns. It has real-time priority where
# that is permitted, so that no other program takes its CPU: between the choice of the next thread, from which on the kernel counts,
# and the record of the switch the host of a virtual machine was seen to take a millisecond, in every second switch.
MEASURED = """
import contextlib, os, resource, subprocess, sys
with contextlib.suppress(PermissionError):
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
subprocess.run(["bash", "-c", sys.argv[1]], check=True, preexec_fn=lambda: None)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(int(1e9 * (used.ru_utime + used.ru_stime)))
"""


# 512 KiB for each CPU is the least that is permitted with the kernel's records.
SMALL_BUFFER = f"{max(1, (os.cpu_count() + 1) // 2)}M"
TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def stolen_ns():
    """How long CPUs of this virtual machine did not run when they could have, to within a tick of each."""
    with open("/proc/stat", encoding="ascii") as stat:
        return int(stat.readline().split()[8]) * TICK_NS


def not_known(row):
    return row.get("not_known_ns", 0)


@unittest.skipIf(NO_KERNEL, NO_KERNEL or "")
class KnownStatesTest(TracedTest):
    def check_sums(self, trace):
        """The sums (cpu, off the CPU, not known) of all threads, which are the same in each view."""
        sums = [0, 0, 0]
        walls = {}
        all_own_ns = 0
        for thread in read_report(trace, "tree")["threads"]:
            root = thread["root"]
            parts = (root["cpu_ns"], root["off_cpu_ns"], not_known(root))
            self.assertEqual(sum(parts), root["cum_ns"], thread["name"])
            # States include what arctrace does in the thread, which is in no sum.
            own_ns = sum(node["overhead_ns"] for node, _ in walk(root) if node["name"] == "[arctrace]")
            all_own_ns += own_ns
            walls[thread["pid"], thread["tid"]] = (walls.get((thread["pid"], thread["tid"]), 0) + root["cum_ns"] + own_ns)
            sums = [a + b for a, b in zip(sums, parts)]
        states_of, in_states = {}, [0, 0, 0]
        for thread in read_report(trace, "threads")["threads"]:
            off = thread["ready_ns"] + thread["blocked_ns"]
            key = thread["pid"], thread["tid"]
            states_of[key] = states_of.get(key, 0) + thread["running_ns"] + off + not_known(thread)
            in_states = [in_states[0] + thread["running_ns"], in_states[1] + off, in_states[2] + not_known(thread)]
        self.assertEqual(states_of, {key: wall for key, wall in walls.items() if wall != 0})
        self.assertEqual(sum(in_states), sum(sums) + all_own_ns)
        for state_ns, sum_ns in zip(in_states, sums):
            self.assertLessEqual(sum_ns, state_ns)
        summary = read_report(trace, "summary")
        self.assertEqual([summary["cpu_ns"], summary["off_cpu_ns"], not_known(summary)], sums)
        self.assertEqual(sum(sums), summary["thread_ns"])
        path = read_report(trace, "critical-path")
        self.assertEqual(sum(row["ns"] for row in path["critical_path"]), path["wall_ns"])
        self.assertLessEqual(sums[0], os.cpu_count() * summary["wall_ns"])
        if not read_info(trace)["session"]["finished"]:
            return sums  # cut-off calls are not exported
        exported = trace.with_suffix(".db")
        read("export", "--to=sqlite", "--force", "-o", exported, trace)
        with contextlib.closing(sqlite3.connect(exported)) as database:
            in_threads = database.execute("SELECT sum(cpu_ns), sum(off_cpu_ns), sum(not_known_ns) FROM threads")
            self.assertEqual(list(in_threads.fetchone()), sums)
            of_state = dict(database.execute("SELECT state, sum(duration_ns) FROM scheduling GROUP BY state"))
        self.assertEqual([of_state.get("running", 0), of_state.get("not known", 0)], [in_states[0], in_states[2]])
        self.assertEqual(sum(of_state.values()), sum(in_states))
        return sums

    @staticmethod
    def is_as_used(on_cpu, used, stolen):
        """`used` is the kernel's own count, which excludes what the machine's host took meanwhile. That is known to
        within ticks only, so it can't be decided for each recording on a machine whose host is busy."""
        return 0.97 * used <= on_cpu <= 1.03 * used + stolen + os.cpu_count() * TICK_NS

    def check_at_most(self, on_cpu, used, stolen):
        """States that were invented for a gap, which lasts as long as the rest, would be much more."""
        self.assertLessEqual(on_cpu, 1.25 * used + stolen + os.cpu_count() * TICK_NS)

    def record_senders(self, meanwhile, *options, turns=2000):
        """A recording of SENDERS, to whose recorder `meanwhile` does something; its session; how long the program had a
        CPU, and how long the machine had none meanwhile, in ns; and what the recorder printed."""
        before = stolen_ns()
        source, program, trace = (self.directory / name for name in ("senders.c", "senders", "senders.data"))
        source.write_text(SENDERS, encoding="ascii")
        subprocess.run(["gcc", "-O1", "-finstrument-functions", "-pthread", source, "-o", program], check=True)
        with start_arctrace("record", "--kernel=bpf", "--no-libcall", *options, "-o", trace, "--", program, turns,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True) as recorder:
            session = recorder.stdout.readline().rstrip()
            self.addCleanup(lambda: os.path.exists(session) and os.unlink(session))
            time.sleep(0.3)
            meanwhile(recorder)
            time.sleep(0.3)
            recorder.stdin.write("\n")
            recorder.stdin.flush()
            used = int(recorder.stdout.readline())
            printed = recorder.stderr.read()
        return trace, session, used, stolen_ns() - before, printed

    @cases.in_gate
    def test_switched_off_for_a_while(self):
        trace = self.directory / "off.data"
        read("record", "--kernel=bpf", "-o", trace, "--", "sh", "-c", SWITCHED_OFF)
        _, _, unknown = self.check_sums(trace)
        off, = (gap for gap in read_report(trace, "summary")["gaps"] if gap["reason"] == "kernel off")
        self.assertGreaterEqual(off["to_ns"] - off["from_ns"], 0.6e9)
        # These are the shell, and the child that it waits for.
        self.assertGreaterEqual(unknown, 2 * 0.6e9)
        for thread in read_report(trace, "threads")["threads"]:
            for state in thread["states"]:
                begin, end = state["start_ns"], state["start_ns"] + state["duration_ns"]
                if min(end, off["to_ns"]) > max(begin, off["from_ns"]):
                    self.assertEqual(state["state"], "not known", (thread["name"], state))

    @cases.in_gate
    def test_records_that_were_lost(self):
        def stop_for_a_while(recorder):
            recorder.send_signal(signal.SIGSTOP)
            time.sleep(1)
            recorder.send_signal(signal.SIGCONT)
        for _ in range(ATTEMPTS):  # on a busy machine little is written meanwhile
            trace, _, used, stolen, printed = self.record_senders(stop_for_a_while, "-b", SMALL_BUFFER)
            if " 0 lost" not in printed:
                break
        self.assertNotIn(" 0 lost", printed)
        on_cpu, _, unknown = self.check_sums(trace)
        self.assertGreater(unknown, 0)
        self.check_at_most(on_cpu, used, stolen)

    @cases.in_gate
    def test_threads_of_other_processes(self):
        """Other processes share the CPUs with the recorded ones; how long each had one is not in the trace."""
        for attempt in range(ATTEMPTS):  # the test can't choose which of them share a CPU
            seen = self.record_beside_others(self.directory / f"shared-{attempt}.data")
            if seen:
                break
        self.assertTrue(seen)

    def record_beside_others(self, trace):
        """Whether one of the other processes shared a CPU with the recorded ones."""
        burners = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(os.cpu_count())]
        try:
            read("record", "--kernel=bpf", "-o", trace, "--", "sh", "-c", PROCESSES)
        finally:
            for burner in burners:
                burner.kill()
                burner.wait()
        own = {(thread["pid"], thread["tid"]) for thread in read_report(trace, "threads")["threads"]}
        summary = read_report(trace, "summary", "--all-threads")
        self.assertLessEqual(summary["cpu_ns"], os.cpu_count() * summary["wall_ns"])
        others = [thread for thread in read_report(trace, "threads", "--all-threads")["threads"]
                  if (thread["pid"], thread["tid"]) not in own]
        self.assertLessEqual({thread["running_ns"] for thread in others}, {0})
        path = read_report(trace, "critical-path", "--all-threads")["critical_path"]
        self.assertLessEqual({(row["pid"], row["tid"]) for row in path}, own)
        return not {burner.pid for burner in burners}.isdisjoint(thread["tid"] for thread in others)

    @cases.in_gate
    def test_processes_from_their_fork_to_their_end(self):
        """All time of short processes on a CPU is there, and the critical path knows what they did: in one recording of
        several, and in none more than they did."""
        tried = []
        for attempt in range(ATTEMPTS):
            tried.append(self.record_processes(self.directory / f"processes-{attempt}.data"))
            *cpu, not_known_ns, wall_ns = tried[-1]
            # A wait that a thread of another process ended is not known.
            if self.is_as_used(*cpu) and not_known_ns < 0.1 * wall_ns:
                return
        self.fail(f"CPU time, the kernel's count, stolen, not known, wall: {tried}")

    def record_processes(self, trace):
        """The processes' CPU time by the trace and by the kernel, what was stolen meanwhile, and how much of how long a
        critical path is not known."""
        before = stolen_ns()
        used = int(read("record", "--kernel=bpf", "-b", "64M", "-o", trace, "--", sys.executable, "-c",
                        MEASURED, PROCESSES))
        _, _, unknown = self.check_sums(trace)
        self.assertEqual(unknown, 0)
        threads = read_report(trace, "threads")["threads"]
        first = threads[0]["pid"]
        on_cpu = sum(thread["running_ns"] for thread in threads if thread["pid"] != first)
        stolen = stolen_ns() - before
        cpu_of = collections.Counter()
        for thread in read_report(trace, "tree")["threads"]:
            cpu_of[thread["pid"], thread["tid"]] += thread["root"]["cpu_ns"]
        path = read_report(trace, "critical-path")
        running, not_known_ns = collections.Counter(), 0
        for row in path["critical_path"]:
            if row["state"] == "running":
                running[row["pid"], row["tid"]] += row["ns"]
            if row["state"] == "not known":
                not_known_ns += row["ns"]
        for thread, time_ns in running.items():
            self.assertLessEqual(time_ns, cpu_of[thread], thread)
        return on_cpu, used, stolen, not_known_ns, path["wall_ns"]

    def test_nothing_is_lost(self):
        # The kernel counts its work to give a thread an idle CPU as the thread's, from before there is a record of it:
        # some microseconds in a virtual machine, which must be a small part of all.
        tried = []
        for _ in range(ATTEMPTS):
            trace, _, used, stolen, printed = self.record_senders(lambda recorder: None, "-b", "256M", turns=400_000)
            self.assertIn(" 0 lost", printed)
            on_cpu, _, unknown = self.check_sums(trace)
            self.assertEqual(unknown, 0)
            tried.append((on_cpu, used, stolen))
            if self.is_as_used(*tried[-1]):
                return
        self.fail(f"CPU time, the kernel's count, stolen: {tried}")

    def test_a_flight_recorder(self):
        trace, _, used, stolen, _ = self.record_senders(lambda recorder: None, "--mode=overwrite", "-b", SMALL_BUFFER)
        on_cpu, _, unknown = self.check_sums(trace)
        gaps = read_report(trace, "summary")["gaps"]
        gave_way = any(gap["reason"] == "overwritten" and gap["cpu"] is not None for gap in gaps)
        self.assertEqual(unknown > 0, gave_way, gaps)
        self.check_at_most(on_cpu, used, stolen)

    def test_removed_files(self):
        """Nothing is known of the time whose files were removed, or are not read."""
        trace, _, used, stolen, printed = self.record_senders(lambda recorder: None, "--size-limit", "1M", "-b", "8M")
        self.assertIn("removed", printed)
        # The last file may have little more than the end; some have no records of the kernel's.
        trace = next(file for file in sorted(trace.parent.glob("senders.data.*"), key=lambda file: -file.stat().st_size)
                     if "cpu_ns" in read_report(file, "tree")["threads"][0]["root"])
        on_cpu, _, unknown = self.check_sums(trace)
        self.check_at_most(on_cpu, used, stolen)
        self.assertGreater(unknown, 0)
        removed, = (gap for gap in read_report(trace, "summary")["gaps"] if gap["reason"] == "removed" and gap["tid"] is None)
        for thread in read_report(trace, "threads")["threads"]:
            for state in thread["states"]:
                if state["start_ns"] + state["duration_ns"] <= removed["to_ns"]:
                    self.assertEqual(state["state"], "not known", (thread["name"], state, removed))

    def test_a_killed_recorder(self):
        def kill(recorder):
            recorder.kill()
            recorder.wait()
        trace, session, used, stolen, _ = self.record_senders(kill, "-b", "8M")
        self.addCleanup(trace.unlink, missing_ok=True)
        recovered = self.directory / "recovered.data"
        read("recover", session, f"--merge={trace}", "-o", recovered)
        read("destroy", session)
        for path in (trace, recovered):
            on_cpu, _, unknown = self.check_sums(path)
            self.assertGreater(unknown, 0, path)
            self.check_at_most(on_cpu, used, stolen)


if __name__ == "__main__":
    cases.main()
