"""The kernel writes into the same buffer: time on and off the CPU, and users who may not see it."""
import collections
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

import cases
import states
import support
from command import ARCTRACE, LEFT_BEHIND, arctrace, lines_without, read, read_dump, read_info, read_report, run, start_arctrace
from kernel_programs import (ATTEMPTS, NO_KERNEL, BracketsTest, ProgramTest, check_every_switch, check_switches,
                             check_time_on_and_off_the_cpu, check_two_on_one_cpu, measured_of, overlap, whole)
from tracing import TracedTest

# Writes 1000 records, prints where, waits for a line, and writes 500 more.
WRITER = support.API + """
ring = name("ring")
for i in range(1000): api.arctrace_instant(ring)
print(os.environ["ARCTRACE_SESSION"], flush=True)
sys.stdin.readline()
for i in range(500): api.arctrace_instant(ring)
print("done", flush=True)
sys.stdin.readline()
"""

# Writes argument 1 blocks of 4096 bytes, past the page cache; prints its number.
DIRECT_WRITER = """
import mmap, os, sys
fd = os.open("direct", os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
page = mmap.mmap(-1, 4096)
for _ in range(int(sys.argv[1])): os.write(fd, page)
print(os.getpid())
"""

# Writes a line to `cat` (its process number is argument 1) each time that it sleeps, in a read.
FEEDER = """
for i in 1 2 3 4 5; do
  while read -r call rest < /proc/$0/syscall && [ $call = running ]; do :; done
  echo line
done
"""

# A thread that is not the first one ends the program.
CRASH = r"""
#include <pthread.h>
#include <unistd.h>
#ifndef BAD
#define BAD
#endif
static volatile int* volatile nowhere;
BAD static void bad(void) { *nowhere = 1; }
static void* work(void* unused) { bad(); pause(); return unused; }
int main(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, work, NULL);
  for (;;) pause();
}
"""


# Wake-ups in which the running thread had no part.
INTERRUPTS = {"interrupt", "timer"}


class OptionsTest(TracedTest):
    @cases.in_gate
    def test_bad_option(self):
        done = arctrace("record", "--kernel=maybe", "--", "true")
        self.assertEqual(done.returncode, 2)
        self.assertIn('"maybe" is not auto, bpf, perf, require, no or irq', done.stderr)


@unittest.skipIf(NO_KERNEL, NO_KERNEL or "")
class KernelTest(ProgramTest):
    PROGRAM = "waits"

    def test_time_on_and_off_the_cpu(self):
        trace, measured, _ = self.record_whole()
        for function in check_time_on_and_off_the_cpu(self, trace, measured).values():
            self.assertLessEqual(function["ready_ns"], function["off_cpu_ns"])
        for view in ("arcs", "invocations", "flow"):
            text = json.dumps(read_report(trace, view, "--limit=100"))
            self.assertIn("off_cpu_ns", text, view)

    @cases.in_gate
    def test_every_switch_is_there(self):
        trace, measured, _ = self.record_whole()
        left, (begins, ends) = check_every_switch(self, trace, measured)
        # The records include switches before the program was executed, which it counts, too.
        self.assertLessEqual(sum(time < begins for time in left), measured["switches"])
        self.assertGreaterEqual(sum(time < ends for time in left), measured["switches"])
        records = read_dump(trace, "--type", "SWITCH")
        self.assertEqual({r["pid"] for r in records if r["tid"] == measured["tid"]},
                         {measured["tid"]})

    def test_who_gets_a_cpu_leaves_it_next(self):
        trace, _, _ = self.record_whole()
        # For processes that are not recorded not all switches are there.
        traced = {r["pid"] for r in read_dump(trace, "--type", "ENTER")}
        self.assertEqual(len(traced), 2)
        running = {}
        for record in read_dump(trace, "--type", "SWITCH"):
            if record["cpu"] in running:
                self.assertEqual(record["tid"], running[record["cpu"]], record)
            running.pop(record["cpu"], None)
            if record["next_tgid"] in traced:
                running[record["cpu"]] = record["next_tid"]

    def test_the_threads_are_the_programs_own(self):
        """The kernel's records name many threads that run no traced program."""
        trace, _, _ = self.record_program()
        info = read_info(trace)
        self.assertEqual(len(info["threads"]), 2)
        self.assertEqual(info["summary"]["threads"], 2)
        everything = read_report(trace, "tree", "--all-threads")["threads"]
        self.assertGreater(len(everything), 2)
        self.assertNotIn(0, [thread["tid"] for thread in everything])

    def test_the_summary_says_which_thread_crashed(self):
        program = self.directory / "crash"
        subprocess.run(["gcc", "-O0", "-pthread", "-finstrument-functions", "-x", "c", "-", "-o",
                        program], input=CRASH, text=True, check=True)
        done = self.record(program, options=("--kernel=bpf", "--signals", "--no-libcall"))
        self.assertEqual(done.status, -signal.SIGSEGV, done.stderr)
        text = arctrace("report", done.trace).stdout
        self.assertIn("killed by signal 11 (Segmentation fault)", text)
        self.assertRegex(text, r"(?m)^  thread crash \d+/\d+: work > bad$")
        self.assertIn("all threads: ", text)
        self.assertNotIn("last call: K:", text)
        came = text.split("Where it was")[1].split("\n\n")[0]
        self.assertEqual(len(re.findall(r" \d+/\d+: ", came)), 2, came)  # main and the other one, once each

    def test_the_summary_names_the_function_that_crashed_and_is_not_recorded(self):
        program = self.directory / "crash"
        leave_out = "-DBAD=__attribute__((noinline,no_instrument_function))"
        for build, options in (
                (("-O0", "-finstrument-functions", leave_out), ("--no-libcall",)),
                (("-O1", "-DBAD=__attribute__((noinline))"), ("-P", ".", "--no-libcall"))):
            with self.subTest(options):
                subprocess.run(["gcc", *build, "-pthread", "-x", "c", "-", "-o", program], input=CRASH,
                               text=True, check=True)
                done = self.record(program, options=("--kernel=bpf", "--signals", *options))
                self.assertEqual(done.status, -signal.SIGSEGV, done.stderr)
                text = arctrace("report", done.trace).stdout
                self.assertRegex(text, r"(?m)^  thread crash \d+/\d+: .*\n"
                                       r"    it was in bad, which is not recorded$")
                delivered = read_dump(done.trace, "--type", "SIGNAL")[-1]
                self.assertGreater(int(delivered["instruction"], 16), 0)
                self.assertNotIn("bad", arctrace("report", "--view=flow", done.trace).stdout)

    def test_a_crash_in_the_first_bytes_of_a_patched_function(self):
        """They run elsewhere, in arctrace's copy, which is not where the program was. The times are the signal's."""
        program = self.directory / "crash"
        subprocess.run(["gcc", "-O2", "-pthread", "-x", "c", "-", "-o", program], text=True, check=True, input=r"""
            #include <stddef.h>
            #include <unistd.h>
            __attribute__((noinline)) int first_of(const int* p) {
              int sum = 0;
              for (int i = 0; i < 4; ++i) sum += p[i];
              return sum + getpid();
            }
            const int* volatile nowhere;
            int main(void) {
              getppid();
              return first_of(nowhere);
            }""")
        done = self.record(program, options=("--kernel=bpf", "--signals", "-P", "first_of"))
        self.assertEqual(done.status, -signal.SIGSEGV, done.stderr)
        delivered = read_dump(done.trace, "--type", "SIGNAL")[-1]
        copies = [module for process in read_info(done.trace)["processes"] for module in process["modules"]
                  if module["path"] == "[arctrace]"]
        address = int(delivered["instruction"], 16)
        self.assertTrue(any(int(m["start"], 16) <= address < int(m["end"], 16) for m in copies), (delivered, copies))
        text = arctrace("report", done.trace).stdout
        came = text.split(") came\n")[1].split("\n\n")[0]
        self.assertRegex(came, r"^  thread crash \d+/\d+: first_of; last call: getppid, ended .* before$")
        last = read_report(done.trace, "summary")["crash"]["last_call_stop_ns"]
        self.assertEqual(came.split("ended ")[1], support.duration_text(delivered["time_ns"] - last) + " before")
        self.assertNotIn("[arctrace]: not a file", arctrace("report", "--view=flow", done.trace).stdout)

    def test_the_child_is_recorded_too(self):
        trace, measured, _ = self.record_whole(
            "--syscalls", "--page-faults", "--signals", "--contention")
        child = measured["child"]
        self.assertIn((measured["tid"], child), [(record["tid"], record["child_tid"])
                                                 for record in read_dump(trace, "--type", "FORKED")])
        self.assertTrue(any(record["tid"] == child
                            for record in read_dump(trace, "--type", "SWITCH")))
        calls = read_dump(trace, "--type", "SYSCALL")
        self.assertGreaterEqual(sum(record["tid"] == child for record in calls), 2 * measured["rounds"])
        self.assertGreater(len(read_dump(trace, "--type", "PAGE_FAULT")), 10)
        delivered = read_dump(trace, "--type", "SIGNAL")
        self.assertEqual([r["signal"] for r in delivered if r["tid"] == measured["tid"]],
                         [signal.SIGUSR1])

    def test_overwrite_mode(self):
        trace, _, _ = self.record_program("--mode=overwrite", "-b", "1M", "--block-size", "4k",
                                  "--syscalls")
        self.assertGreater(len(read_dump(trace, "--type", "SWITCH")), 100)

    def test_who_wakes(self):
        """A timer's interrupt wakes a sleeper, and the other process wakes a reader of the pipe."""
        for _ in range(ATTEMPTS):  # single events of the scheduler were seen to be missing, in ftrace, too
            trace, measured, _ = self.record_whole(program=self.build("states"), arguments=["wakes"])
            if len(self.woken_by_child(trace, measured)) >= measured["rounds"]:
                break
        self.check_wakers(trace, measured)

    @staticmethod
    def woken_by_child(trace, measured):
        """The contexts in which the program's child woke the program."""
        return [record["context"] for record in read_dump(trace, "--type", "WAKING")
                if (record["woken_tid"], record["tid"]) == (measured["tid"], measured["child"])]

    def check_wakers(self, trace, measured):
        forked, = (record["time_ns"] for record in read_dump(trace, "--type", "FORKED")
                   if record["child_tid"] == measured["child"])
        woken = [record for record in read_dump(trace, "--type", "WAKING")
                 if record["woken_tid"] == measured["tid"]]
        by_child = self.woken_by_child(trace, measured)
        # Whenever the child writes, the program sleeps; and once more when the child ends.
        self.assertGreaterEqual(len(by_child), measured["rounds"])
        self.assertEqual(set(by_child), {"thread"})
        # Until there is a child, only timers wake the program. On a busy machine one of the kernel's own threads
        # handles the end of some of them.
        asleep = [record["context"] for record in woken if record["time_ns"] < forked]
        self.assertGreaterEqual(len(asleep), measured["sleeps"])
        self.assertTrue(set(asleep) & INTERRUPTS, asleep)

    def test_interrupts_of_user_mode_wake(self):
        """Timers that end while another process computes on the same CPU do not count as its wake-ups."""
        cpu = min(os.sched_getaffinity(0))
        hog = subprocess.Popen([sys.executable, "-c", "print(flush=True)\nwhile True: pass"],
                               stdout=subprocess.PIPE, preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))
        self.addCleanup(hog.wait)
        self.addCleanup(hog.kill)
        self.addCleanup(hog.stdout.close)
        hog.stdout.readline()  # from here on it only computes
        by_hog = []
        for _ in range(5):  # repeats until the hog had its CPU when a timer ended
            done = self.record("taskset", "-c", str(cpu), self.build("brackets"), "1",
                               options=("--kernel=bpf", "--no-libcall"))
            tid = measured_of(done.stdout)["tid"]
            by_hog += [record["context"] for record in read_dump(done.trace, "--type", "WAKING")
                       if record["woken_tid"] == tid and record["tid"] == hog.pid]
            self.assertLessEqual(set(by_hog), INTERRUPTS)
            if len(by_hog) > 10 and "timer" in by_hog:
                return
        self.fail(f"woken while it computed: {collections.Counter(by_hog)}")

    @cases.in_gate
    def test_block_io(self):
        device = os.stat(self.directory).st_dev
        if os.major(device) == 0:
            self.skipTest("the directory for temporary files is on no block device")
        def attempt():
            done = self.record(sys.executable, "-c", DIRECT_WRITER, "20",
                               options=("--kernel=bpf", "--no-libcall", "--block-io"))
            return done.trace, int(done.stdout), done.stderr

        trace, writer, _ = whole(self, attempt)
        records = [r for t in ("BLOCK_IO", "BLOCK_IO_END") for r in read_dump(trace, "--type", t)]
        written = [r for r in records if r["operation"] == "write" and r["bytes"] == 4096 and r["tid"] == writer]
        begun = {r["sector"]: r for r in written if r["type"] == "BLOCK_IO"}
        ended = {r["sector"]: r for r in written if r["type"] == "BLOCK_IO_END"}
        # The program has waited for each of the requests.
        self.assertGreaterEqual(len(ended), 20)
        self.assertEqual(set(ended), set(begun))
        for sector, end in ended.items():
            self.assertEqual(end["error"], 0)
            self.assertEqual((end["tid"], end["device"]),
                             (begun[sector]["tid"], begun[sector]["device"]))
            self.assertGreater(end["time_ns"], begun[sector]["time_ns"])
        # The flow has the thread's requests, within the functions that made them.
        shown = collections.Counter((e["type"], e["tid"]) for e in read_report(trace, "flow")["flow"]
                                    if e.get("type", "").startswith("BLOCK_IO"))
        for what in ("BLOCK_IO", "BLOCK_IO_END"):
            self.assertEqual(shown[what, writer],
                             sum(r["type"] == what and r["tid"] == writer for r in records))

    @contextlib.contextmanager
    def recording_of_cat(self, trace):
        """The recorder, and `cat`, once that waits for its input: a recorder's start may take long."""
        with start_arctrace("record", "--kernel=bpf", "-o", trace, "--", "cat", stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as recorder:
            recorder.stdin.write("begin\n")
            recorder.stdin.flush()
            self.assertEqual(recorder.stdout.readline(), "begin\n")
            yield recorder, states.command_of(recorder.pid)
            recorder.communicate()
        self.assertEqual(recorder.returncode, 0)

    def test_the_recorder_sleeps(self):
        """The recorder sleeps while nothing happens. The kernel can't wait on the memory of a BPF map: a recorder
        that tries takes a whole CPU, and never sleeps."""
        with self.recording_of_cat(self.directory / "idle.data") as (recorder, _):
            threads = list(pathlib.Path(f"/proc/{recorder.pid}/task").iterdir())

            def ticks():
                """CPU time of all threads of the recorder, in ticks."""
                words = pathlib.Path(f"/proc/{recorder.pid}/stat").read_text().rpartition(")")[2].split()
                return int(words[11]) + int(words[12])

            def asleep():
                return all((thread / "stat").read_text().rpartition(")")[2].split()[0] == "S" for thread in threads)

            before, begin = ticks(), time.monotonic()
            for _ in range(5):
                states.wait_until(asleep, "that no thread of the recorder has work")
                time.sleep(0.5)
            used = (ticks() - before) / os.sysconf("SC_CLK_TCK")
            self.assertLess(used, 0.5 * (time.monotonic() - begin))

    @cases.in_gate
    def test_a_program_without_calls(self):
        """A thread without calls has its lifetime and its times on and off the CPU all the same."""
        trace = self.record("sleep", "0.2", options=("--kernel", "--no-libcall")).trace
        thread, = read_report(trace, "threads")["threads"]
        self.assertEqual(thread["name"], "sleep")
        blocked = sum(s["duration_ns"] for s in thread["states"] if s["state"] == "blocked")
        self.assertGreaterEqual(blocked, 0.19e9)  # the clock runs before it has left its CPU
        tree, = read_report(trace, "tree")["threads"]
        self.assertIn("[loader]", [child["name"] for child in tree["root"]["children"]])
        rows = read_report(trace, "log-rt")["log_rt"]
        self.assertGreater(sum(row["ds"] for row in rows), 0)

    def test_names_of_threads_that_are_not_recorded(self):
        trace = self.directory / "foreign.data"
        with self.recording_of_cat(trace) as (recorder, cat):
            subprocess.run(["bash", "-c", 'exec -a feeder bash -c "$0" "$1"', FEEDER, str(cat)], check=True,
                           stdout=recorder.stdin)
        names = read_dump(trace, "--type", "NAMED")
        named = {r["name"] for r in names}
        self.assertIn("bash", named)
        # These include threads that existed before and only had a CPU before or after a recorded thread.
        own = {r["tid"] for r in read_dump(trace, "--type", "FORKED,EXECED,EXITED")}
        switches = read_dump(trace, "--type", "SWITCH")
        foreign = {r["next_tid"] for r in switches} | {r["tid"] for r in switches}
        self.assertEqual(foreign - own - {0} - {r["tid"] for r in names}, set())
        text = read("report", trace, "--view=wakers")
        self.assertRegex(text, r"\bbash \d+/\d+")

    def test_nothing_of_the_recorder(self):
        with start_arctrace("record", "--kernel", "--syscalls", "-o", self.directory / "own.data", "true",
                            stderr=subprocess.DEVNULL) as recorder:
            recorder.wait()
        tids = {r["tid"] for r in read_dump(self.directory / "own.data", "--type", "SYSCALL")}
        self.assertTrue(tids)
        self.assertNotIn(recorder.pid, tids)
        # The recorder's threads, like all that are not recorded, appear only beside recorded ones.
        switches = read_dump(self.directory / "own.data", "--type", "SWITCH")
        recorded = {r["child_tgid"] for r in read_dump(self.directory / "own.data",
                                                       "--type", "FORKED")}
        self.assertTrue(switches)
        for switch in switches:
            self.assertTrue({switch["tgid"], switch["next_tgid"]} & recorded, switch)

    def test_losses_by_cpu(self):
        trace, _, printed = self.record_program("--mode=stop", "-b", "64k", "--block-size", "4k")
        lost = [r for r in read_dump(trace, "--type", "LOST") if r["cause"] == "kernel"]
        self.assertGreater(sum(record["count"] for record in lost), 1000)
        self.assertIn(f"kernel {sum(record['count'] for record in lost):,}", printed)
        for record in lost:
            self.assertIn(record["cpu"], range(os.cpu_count()))
            self.assertLess(record["since_ns"], record["time_ns"])

    def test_small_sessions(self):
        """A CPU that switches all the time finds blocks as long as there are free ones."""
        least_kib = min(512 * os.cpu_count(), 16384)
        size = ("-b", f"{least_kib}k", "--block-size", "4k")
        # No block is freed: a CPU that finds none must have used them up.
        trace, _, printed = self.record_program(*size, "--mode=stop", "--syscalls")
        self.assertNotIn(" 0 lost", printed)
        self.assertGreater(trace.stat().st_size, least_kib << 9)
        # On a busy machine the recorder may come too late; records that it did not save are counted.
        trace, measured, _ = self.record_program(*size)
        left = sum(record["tid"] == measured["tid"] for record in read_dump(trace, "--type", "SWITCH"))
        lost = read_info(trace)["summary"]["lost_by_cause"].get("kernel", 0)
        self.assertGreater(measured["switches"], measured["rounds"])
        self.assertGreaterEqual(left + lost, measured["switches"])
        trace, _, _ = self.record_program(*size, "--mode=overwrite")
        self.assertGreater(len(read_dump(trace, "--type", "SWITCH")), 1000)
        for mode in ("drop", "overwrite"):
            done = arctrace("record", "--kernel", f"--mode={mode}", "-b", "256k", "--block-size",
                            "4k", "-o", self.directory / "none", "--", "true")
            self.assertEqual(done.returncode, 2)
            lines = lines_without(done.stderr, LEFT_BEHIND)
            self.assertEqual(len(lines), 1, done.stderr)
            self.assertIn(f"-b must be at least {least_kib}k", lines[0])

    def test_processes_of_other_pid_namespaces(self):
        """Two programs have the same process number, each in its own PID namespace."""
        contained = ["unshare", "--pid", "--fork", "--mount-proc"]
        tried = subprocess.run([*contained, "true"], stderr=subprocess.PIPE, text=True,
                               check=False)
        if tried.returncode != 0:
            self.skipTest(f"no PID namespaces: {tried.stderr.strip()}")
        both = f"{' '.join(contained)} $0 >one & {' '.join(contained)} $0 >two; wait"

        def attempt():
            done = self.record("sh", "-c", both, self.program, options=("--kernel=bpf", "--no-libcall"))
            self.assertEqual(done.status, 0, done.stderr)
            return done.trace, done.stderr

        trace, _ = whole(self, attempt)
        measured = [measured_of((self.directory / name).read_text()) for name in ("one", "two")]
        total = {name: sum(one[name] for one in measured) for name in measured[0]}
        self.assertEqual([one["tid"] for one in measured], [1, 1])
        numbered = read_dump(trace, "--type", "NUMBERED")
        namespaces = {r["pid_namespace"] for r in numbered}
        self.assertEqual(len(namespaces), 2)
        for namespace in namespaces:
            self.assertEqual([r["own_tid"] for r in numbered if r["pid_namespace"] == namespace], [1, 2])
        functions = self.functions(trace)
        check_switches(self, functions["sleeper"], total, "sleeper")
        self.assertEqual(functions["sleeper"]["calls"], 2)
        self.assertGreater(functions["sleeper"]["off_cpu_ns"], 0.9 * total["asked_ns"])
        self.assertLessEqual(functions["sleeper"]["off_cpu_ns"], total["slept_ns"])
        self.assertGreater(functions["computer"]["cpu_ns"], 0.95 * total["computations"] * measured[0]["compute_ns"])

    @cases.in_gate
    def test_time_namespaces(self):
        """The recorder, or the program, is in a time namespace whose clock is 100,000 s ahead: times are as always."""
        ahead = ["unshare", "--time", "--monotonic", "100000", "--fork"]
        tried = subprocess.run([*ahead, "true"], stderr=subprocess.PIPE, text=True, check=False)
        if tried.returncode != 0:
            self.skipTest(f"no time namespaces: {tried.stderr.strip()}")
        for around_recorder, around_program in ((ahead, []), ([], ahead)):
            trace = self.directory / "ahead.data"
            done = run(*around_recorder, ARCTRACE, "record", "--kernel", "-o", trace, "--", *around_program, self.program)
            self.assertEqual(done.returncode, 0, done.stderr)
            measured = measured_of(done.stdout)
            read("check", trace)
            functions = self.functions(trace)
            self.assertGreater(functions["sleeper"]["off_cpu_ns"], 0.9 * measured["asked_ns"])
            self.assertLessEqual(functions["sleeper"]["off_cpu_ns"], measured["slept_ns"])
            summary = read_report(trace, "summary")["summary"]
            self.assertLess(summary["duration_ns"], 1000 * 10**9)

    def test_killed_recorder(self):
        """The program continues, its records can be recovered, and a message says where they are."""
        cut = self.directory / "cut"
        recorder = start_arctrace("record", "-o", cut, "--kernel=bpf", "--no-libcall", "-b", "8M", "--",
                                  sys.executable, "-c", WRITER, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(recorder.stdin.close)
        self.addCleanup(recorder.stdout.close)
        self.addCleanup(cut.unlink, missing_ok=True)
        session = recorder.stdout.readline().rstrip()
        self.addCleanup(lambda: os.path.exists(session) and os.unlink(session))
        self.assertTrue(session.startswith("/run/arctrace/"), session)
        recorder.kill()
        recorder.wait()
        recorder.stdin.write("\n")
        recorder.stdin.flush()
        self.assertEqual(recorder.stdout.readline(), "done\n")
        self.assertRegex(arctrace("list").stdout, f"{session} .* 1 writer   left behind")
        self.assertEqual([s["alive"] for s in read_info(session)["buffer"]["slots"]], [True])
        recorder.stdin.write("\n")
        recorder.stdin.flush()
        self.assertEqual(recorder.stdout.read(), "")  # until it has ended
        trace = self.directory / "recovered.data"
        # The recorder's file has what it could write before it was killed.
        done = arctrace("recover", session, f"--merge={cut}", "-o", trace)
        self.assertEqual(done.returncode, 0, done.stderr)
        read("check", trace)
        self.assertEqual(len(read_dump(trace, "--type", "INSTANT")), 1500)
        self.assertGreater(len(read_dump(trace, "--type", "SWITCH")), 0)
        done = arctrace("record", "-o", self.directory / "next", "--kernel=bpf", "--", "true")
        # The message names one of the buffers, perhaps another test's, where it has no /run of its own.
        told = re.search(r"([0-9]+) buffers? in kernel memory left behind by killed recorders: run arctrace "
                         r"recover -o \S+ (\S+) && arctrace destroy (\S+)\n", done.stderr)
        self.assertTrue(told, done.stderr)
        self.assertEqual(told[2], told[3])
        if told[2] != session:
            self.assertGreater(int(told[1]), 1, done.stderr)
        self.assertEqual(arctrace("destroy", session).returncode, 0)
        self.assertFalse(os.path.exists(session))
        done = arctrace("record", "-o", self.directory / "next", "--kernel=bpf", "--", "true")
        self.assertNotIn(session, done.stderr)


@unittest.skipIf(NO_KERNEL, NO_KERNEL or "")
class StampsTest(BracketsTest):
    def test_user_and_kernel_stamps_are_in_order(self):
        """The stamps still agree seconds later."""
        self.check_brackets(120 if os.environ.get("ARCTRACE_TEST_LONG") else 3)


@unittest.skipIf(NO_KERNEL, NO_KERNEL or "")
class KernelFramesTest(ProgramTest):
    """What the kernel does for a thread is in that thread's frames."""

    PROGRAM = "states"

    def children(self, trace, name):
        """{callee of the function: calls}"""
        arcs = {arc["name"]: arc for arc in read_report(trace, "arcs")["arcs"]}
        return {child["name"]: child["calls"] for child in arcs[name]["children"]}

    @cases.in_gate
    def test_system_calls(self):
        trace, _, _ = self.record_whole("--syscalls", arguments=["calls"])
        self.assertEqual(self.children(trace, "caller"), {"K:getppid": 1000})
        call = self.functions(trace)["K:getppid"]
        self.assertEqual(call["module"], "[kernel]")
        self.assertNotIn("marks", call)
        self.assertGreater(call["cum_ns"], 0)

    @cases.in_gate
    def test_system_calls_of_a_threads_start(self):
        """Those that arctrace makes as a thread starts are its own, not the program's."""
        program = self.directory / "threads"
        run("gcc", "-O1", "-pthread", "-x", "c", "-", "-o", program, check=True, input="""
            #include <pthread.h>
            #include <unistd.h>
            static void* run(void* at) { getppid(); return at; }
            int main(void) {
              for (int i = 0; i < 20; ++i) {
                pthread_t thread;
                if (pthread_create(&thread, 0, run, 0) != 0 || pthread_join(thread, 0) != 0) return 1;
              }
              return 0;
            }""")
        trace = self.record(program, options=("--kernel=bpf", "--syscalls")).trace
        calls = {name: row["calls"] for name, row in self.functions(trace).items() if name.startswith("K:")}
        self.assertEqual(calls["K:getppid"], 20)
        for name in ("K:get_robust_list", "K:gettid", "K:prctl"):
            self.assertNotIn(name, calls)
        threads = [tree["root"] for tree in read_report(trace, "tree")["threads"]]
        starts = [child for root in threads for child in root["children"] if child["name"] == "[arctrace]"]
        self.assertGreaterEqual(len(starts), 21)
        self.assertEqual({child["cum_ns"] for child in starts}, {0})

    @cases.in_gate
    def test_system_calls_of_children(self):
        """What children do before they execute a program is in the tables, whether or not they record calls of their
        own; and what arctrace does in them is not."""
        children = 3
        program = self.directory / "children"
        run("gcc", "-O1", "-x", "c", "-", "-o", program, check=True, input="""
            #include <signal.h>
            #include <string.h>
            #include <sys/syscall.h>
            #include <sys/wait.h>
            #include <time.h>
            #include <unistd.h>
            int main(int argc, char** argv) {
              for (int child = 0; child < 3; ++child) {
                const pid_t pid = fork();
                if (pid == 0) {
                  unsigned long mask;
                  for (int i = 0; i < 10; ++i) syscall(SYS_getppid);
                  for (int i = 0; i < 7; ++i) syscall(SYS_rt_sigprocmask, SIG_BLOCK, 0, &mask, 8);
                  for (int i = 0; i < 5; ++i) {
                    const struct timespec time = {0, 2000000};
                    nanosleep(&time, 0);
                  }
                  if (strcmp(argv[1], "execute") == 0) execl("/bin/true", "true", (char*)0);
                  _exit(0);
                }
                waitpid(pid, 0, 0);
              }
              return argc != 2;
            }""")
        for mode in ("execute", "end"):
            for options in (("--no-libcall",), ()):
                with self.subTest(mode=mode, options=options):
                    trace = whole(self, lambda: self.record(program, mode, options=(  # pylint: disable=cell-var-from-loop
                        "--kernel=bpf", "--syscalls", *options))).trace
                    calls = collections.Counter({name: row["calls"] for name, row in self.functions(trace).items()})
                    slept = self.functions(trace)["K:clock_nanosleep"]
                    self.assertEqual(slept["calls"], 5 * children)
                    slept_ns = 5 * children * 2_000_000
                    self.assertGreater(slept["off_cpu_ns"], 0.9 * slept_ns)
                    path = read_report(trace, "critical-path")["critical_path"]
                    self.assertGreater(sum(row["ns"] for row in path if row["state"] == "timer"), 0.8 * slept_ns)
                    summary = read_report(trace, "summary")["summary"]
                    self.assertEqual((summary["processes"], summary["threads"]), (1 + children, 1 + children))
                    # Where no library calls are recorded, a child is joined as it ends, which counts as its own.
                    joins = children if options and mode == "end" else 0
                    self.assertEqual(calls["K:getppid"], 10 * children + joins)
                    if options:
                        continue
                    for name in ("K:get_robust_list", "K:prctl", "K:gettid"):
                        self.assertEqual(calls[name], 0, name)
                    # A program makes some of its own, as it starts and in fork().
                    self.assertEqual(calls["K:rt_sigprocmask"], self.masks_of_program(program, mode))

    @cases.in_gate
    def test_vfork_children(self):
        """What vfork children do before they execute a program is in their parent's frames, and counts there only."""
        program = self.directory / "vforks"
        run("gcc", "-O1", "-x", "c", "-", "-o", program, check=True, input="""
            #include <sys/wait.h>
            #include <unistd.h>
            int main(void) {
              for (int i = 0; i < 5; ++i) {
                const pid_t pid = vfork();
                if (pid == 0) { execl("/bin/true", "true", (char*)0); _exit(1); }
                waitpid(pid, 0, 0);
              }
              return 0;
            }""")
        for options in ((), ("--no-libcall",)):
            with self.subTest(options=options):
                trace = whole(self, lambda: self.record(program, options=(  # pylint: disable=cell-var-from-loop
                    "--kernel=bpf", "--syscalls", *options))).trace
                rows = read_report(trace, "tree")["threads"]
                self.assertEqual(sorted(row["name"] for row in rows), [*["true"] * 5, "vforks"])

    def masks_of_program(self, program, mode):
        """How many rt_sigprocmask the program and its children make, by strace."""
        counted = self.directory / "strace"
        run("strace", "-f", "-e", "trace=rt_sigprocmask", "-o", counted, program, mode, check=True)
        return counted.read_text(encoding="utf-8").count("rt_sigprocmask(")

    @cases.in_gate
    def test_the_first_wait_for_a_cpu(self):
        """A new thread that does not get a CPU waits for one from when it is created."""
        program = self.directory / "late"
        run("gcc", "-O1", "-pthread", "-x", "c", "-", "-o", program, check=True, input="""
            #define _GNU_SOURCE
            #include <pthread.h>
            #include <sched.h>
            #include <stdio.h>
            #include <time.h>
            static double now(void) {
              struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9;
            }
            static double created, late;
            static void* run(void* at) { late = now() - created; return at; }
            int main(void) {
              struct sched_param first = {1};
              cpu_set_t one;
              CPU_ZERO(&one);
              CPU_SET(sched_getcpu(), &one);
              pthread_t thread;
              if (sched_setaffinity(0, sizeof one, &one) != 0 ||
                  sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first) != 0) return 77;
              created = now();
              if (pthread_create(&thread, 0, run, 0) != 0) return 1;
              while (now() - created < 0.02) continue;
              pthread_join(thread, 0);
              printf("%.0f\\n", late * 1e9);
              return 0;
            }""")
        recorded = self.record(program, options=("--kernel=bpf",), check=False)
        if recorded.status == 77:
            self.skipTest("no real-time priority here")
        late_ns = int(recorded.stdout)
        self.assertGreater(late_ns, 15e6)
        report = read_report(recorded.trace, "tree")
        (thread,) = [tree["root"] for tree in report["threads"] if tree["tid"] != tree["pid"]]
        self.assertAlmostEqual(thread["ready_ns"], late_ns, delta=late_ns / 4)
        path = read_report(recorded.trace, "critical-path")
        self.assertNotIn("not known", {row["state"] for row in path["critical_path"] if row["ns"] > 5e6})

    def test_page_faults(self):
        trace, measured, _ = self.record_whole("--page-faults", arguments=["faults"])
        faults = self.children(trace, "toucher")["K:page fault"]
        self.assertGreaterEqual(faults, max(measured["pages"], measured["faults_least"]))
        self.assertLessEqual(faults, measured["faults_most"])
        self.assertEqual(self.functions(trace)["K:page fault"]["cum_ns"], 0)

    @cases.in_gate
    def test_who_releases_a_mutex_wakes_who_waits_for_it(self):
        trace, measured, _ = self.record_whole("--syscalls", arguments=["mutex"])
        rows = [row for row in read_report(trace, "wakers")["wakers"]
                if "release" in row["waker"]["path"] and "take" in row["woken"]["path"]]
        self.assertEqual([row["waker"]["path"][-1] for row in rows], ["K:futex"])
        self.assertEqual([row["woken"]["path"][-1] for row in rows], ["K:futex"])
        # The mutex is not released before the other thread sleeps.
        self.assertEqual(rows[0]["wake_ups"], measured["rounds"])
        self.assertEqual(rows[0]["waker"]["tid"], measured["tid"])
        waiter = rows[0]["woken"]["tid"]
        blocked = [state for thread in read_report(trace, "threads")["threads"]
                   if thread["tid"] == waiter for state in thread["states"]
                   if state["state"] == "blocked" and "take" in state["path"]]
        woken = [state for state in blocked if state.get("waker_tid") == measured["tid"]]
        self.assertEqual(len(woken), rows[0]["wake_ups"])
        self.assertEqual(sum(state["duration_ns"] for state in woken), rows[0]["blocked_ns"])

    def test_differences_on_the_cpu(self):
        trace, _, _ = self.record_whole(arguments=["hogs"])
        for clock in ("wall", "cpu", "off-cpu"):
            found = json.loads(read("diff", "--format=json", f"--clock={clock}", trace, trace))
            self.assertEqual(found["clock"], clock)
            rows = {row["name"]: (row["calls"], row["base_ns"])
                    for row in read_report(trace, "flat", f"--clock={clock}")["functions"]}
            rows.pop("[arctrace]", None)  # which is compared apart
            self.assertEqual({row["name"]: (row["calls_a"], row["base_ns_b"]) for row in found["functions"]}, rows)
        self.assertIn("times of functions are those on a CPU", read("diff", "--clock=cpu", trace, trace))

    def test_two_on_one_cpu_are_preempted(self):
        trace, measured, _ = self.record_whole(arguments=["hogs"])
        threads, calls = check_two_on_one_cpu(self, trace, measured)
        for call in calls:
            ready = [(s["start_ns"], s["start_ns"] + s["duration_ns"]) for s in threads[call["tid"]]["states"]
                     if s["state"] == "ready"]
            self.assertEqual(call["ready_ns"], overlap([(call["start_ns"], call["stop_ns"])], ready))

    @cases.in_gate
    def test_without_the_kernels_records(self):
        done = self.record(self.program, "calls", options=("--no-libcall",))
        for option in ("--clock=cpu", "--clock=off-cpu", "--view=threads", "--view=wakers",
                       "--all-threads"):
            asked = arctrace("report", done.trace, option)
            self.assertEqual(asked.returncode, 2)
            self.assertEqual(asked.stdout, "")
            self.assertRegex(asked.stderr, rf"^arctrace: [^\n]+ {option} needs[^\n]+\n$")
        names = [f["name"] for f in read_report(done.trace, "flat", "--sort=name")["functions"]]
        self.assertEqual(names, sorted(names))
        self.assertIn("processes", read_report(done.trace, "flat", "--per=process"))
        for wrong in (["--clock=cpu", "--view=flow"], ["--view=threads", "--sort=calls"],
                      ["--view=wakers", "--sort=entry"], ["--view=threads", "--merge"]):
            asked = arctrace("report", done.trace, *wrong)
            self.assertEqual(asked.returncode, 2)
            self.assertRegex(asked.stderr, r"^arctrace: report: [^\n]+\n$")


if __name__ == "__main__":
    cases.main()
