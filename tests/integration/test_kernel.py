"""The kernel writes into the same buffer: time on and off the CPU, and the users who may not see it."""
import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import unittest

import cases
import support

SOURCES = pathlib.Path(__file__).parent / "kernel"

# Writes 1000 records, prints where, goes on when it may, and writes 500 more.
WRITER = support.API + """
ring = name("ring")
for i in range(1000): api.arctrace_instant(ring)
print(os.environ["ARCTRACE_SESSION"], flush=True)
sys.stdin.readline()
for i in range(500): api.arctrace_instant(ring)
print("done", flush=True)
sys.stdin.readline()
"""

# Writes argument 1 blocks of 4096 bytes, past the page cache.
DIRECT_WRITER = """
import mmap, os, sys
fd = os.open("direct", os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
page = mmap.mmap(-1, 4096)
for _ in range(int(sys.argv[1])): os.write(fd, page)
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


def arctrace(*arguments):
    return subprocess.run([support.ARCTRACE, *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)


def obstacle():
    """Why the kernel can't write here, by arctrace's own probe; None if it can."""
    tried = subprocess.run(
        [support.ARCTRACE, "record", "-o", "/dev/null", "--kernel=bpf", "--", "true"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    for reason in ("no BTF", "are refused", "is refused", "PID namespace"):
        if tried.returncode == 2 and reason in tried.stderr:
            return tried.stderr.strip()
    return None


NO_KERNEL = obstacle()

# Wake-ups in which the running thread had no part.
INTERRUPTS = {"interrupt", "timer"}


class OptionsTest(support.TraceTest):
    @cases.in_gate
    def test_bad_option(self):
        done = subprocess.run([support.ARCTRACE, "record", "--kernel=maybe", "--", "true"],
                              stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn('"maybe" is not auto, bpf, perf, require or no', done.stderr)


class ProgramTest(support.TraceTest):
    """Tests that record a program of SOURCES."""

    PROGRAM = None  # its name there

    def setUp(self):
        super().setUp()
        self.program = self.build(self.PROGRAM)

    def build(self, name):
        subprocess.run(["gcc", "-O1", "-finstrument-functions", "-pthread",
                        SOURCES / f"{name}.c", "-o", self.directory / name], check=True)
        return self.directory / name

    def record_program(self, *options, arguments=()):
        """(trace, what the program measured, what arctrace printed)."""
        done = self.record(self.program, *arguments,
                           options=("--kernel=bpf", "--no-libcall", *options))
        self.assertEqual(done.status, 0, done.stderr)
        measured = {name: int(value) for name, value in
                    (line.split() for line in done.stdout.splitlines())}
        return done.trace, measured, done.stderr

    def record_whole(self, *options, arguments=()):
        """The same, and nothing is lost: on a busy machine the recorder may come too late."""
        for _ in range(5):
            recorded = self.record_program(*options, arguments=arguments)
            if " 0 lost" in recorded[2]:
                return recorded
        self.fail(recorded[2])

    def functions(self, trace, *options):
        return {f["name"]: f for f in self.report(trace, "flat", *options)["functions"]}


@unittest.skipIf(NO_KERNEL, NO_KERNEL or "")
class KernelTest(ProgramTest):
    PROGRAM = "waits"

    def test_time_on_and_off_the_cpu(self):
        # A hypervisor that takes the CPU in the middle of a switch is counted on either side.
        for _ in range(5):
            trace, measured, _ = self.record_whole()
            functions = self.functions(trace)
            sleeper, computer = functions["sleeper"], functions["computer"]
            if (abs(computer["cpu_ns"] / measured["on_cpu_ns"] - 1) < 0.03 and
                    sleeper["off_cpu_ns"] > 0.9 * measured["slept_ns"]):
                break
        for function in functions.values():
            self.assertEqual(function["cpu_ns"] + function["off_cpu_ns"], function["cum_ns"])
            self.assertLessEqual(function["ready_ns"], function["off_cpu_ns"])
        self.assertGreater(sleeper["off_cpu_ns"], 0.9 * measured["slept_ns"])
        self.assertLessEqual(sleeper["off_cpu_ns"], measured["slept_ns"])
        self.assertGreaterEqual(sleeper["switches"], 10)
        self.assertAlmostEqual(computer["cpu_ns"] / measured["on_cpu_ns"], 1, delta=0.03)
        self.assertGreater(computer["cpu_ns"], 0.95 * measured["computed_ns"])
        on, off = (self.functions(trace, f"--clock={clock}") for clock in ("cpu", "off-cpu"))
        for name, function in functions.items():
            self.assertEqual(on[name]["cum_ns"], function["cpu_ns"])
            self.assertEqual(off[name]["cum_ns"], function["off_cpu_ns"])
            self.assertEqual(on[name]["base_ns"] + off[name]["base_ns"], function["base_ns"])
        for view in ("arcs", "invocations", "flow"):
            text = json.dumps(self.report(trace, view, "--limit=100"))
            self.assertIn("off_cpu_ns", text, view)

    def test_every_switch_is_there(self):
        trace, measured, _ = self.record_program()
        records = self.dump(trace, "--type", "SWITCH")
        left = sum(record["tid"] == measured["tid"] for record in records)
        # Some more when it ended, after its own count.
        self.assertGreater(measured["switches"], 2000)
        self.assertGreaterEqual(left, measured["switches"])
        self.assertLessEqual(left, measured["switches"] + 50)
        times = [record["time_ns"] for record in records]
        self.assertEqual(times, sorted(times))
        self.assertEqual({r["pid"] for r in records if r["tid"] == measured["tid"]},
                         {measured["tid"]})

    def test_who_gets_a_cpu_leaves_it_next(self):
        trace, _, _ = self.record_whole()
        # Of other processes not all switches are recorded.
        traced = {r["pid"] for r in self.dump(trace, "--type", "ENTER")}
        self.assertEqual(len(traced), 2)
        running = {}
        for record in self.dump(trace, "--type", "SWITCH"):
            if record["cpu"] in running:
                self.assertEqual(record["tid"], running[record["cpu"]], record)
            running.pop(record["cpu"], None)
            if record["next_tgid"] in traced:
                running[record["cpu"]] = record["next_tid"]

    def test_the_threads_are_the_programs_own(self):
        """The kernel's records name many threads that run no traced program."""
        trace, _, _ = self.record_program()
        info = self.info(trace)
        self.assertEqual(len(info["threads"]), 2)
        self.assertEqual(info["summary"]["threads"], 2)
        everything = self.report(trace, "tree", "--all-threads")["threads"]
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
                delivered = self.dump(done.trace, "--type", "SIGNAL")[-1]
                self.assertGreater(int(delivered["instruction"], 16), 0)
                self.assertNotIn("bad", arctrace("report", "--view=flow", done.trace).stdout)

    def test_the_child_is_recorded_too(self):
        trace, measured, _ = self.record_program(
            "--syscalls", "--page-faults", "--signals", "--contention")
        forked = self.dump(trace, "--type", "FORKED")
        self.assertGreaterEqual(len(forked), 1)
        child = forked[-1]["child_tid"]
        self.assertTrue(any(record["tid"] == child
                            for record in self.dump(trace, "--type", "SWITCH")))
        calls = self.dump(trace, "--type", "SYSCALL")
        self.assertGreater(sum(record["tid"] == child for record in calls), 4000)
        self.assertGreater(len(self.dump(trace, "--type", "PAGE_FAULT")), 10)
        delivered = self.dump(trace, "--type", "SIGNAL")
        self.assertEqual([r["signal"] for r in delivered if r["tid"] == measured["tid"]],
                         [signal.SIGUSR1])

    def test_overwrite_mode(self):
        trace, _, _ = self.record_program("--mode=overwrite", "-b", "1M", "--block-size", "4k",
                                  "--syscalls")
        self.assertGreater(len(self.dump(trace, "--type", "SWITCH")), 100)

    def test_who_wakes(self):
        """A timer's interrupt wakes a sleeper, the other process a reader of the pipe."""
        trace, measured, _ = self.record_program()
        child = self.dump(trace, "--type", "FORKED")[-1]["child_tid"]
        woken = [record for record in self.dump(trace, "--type", "WAKING")
                 if record["woken_tid"] == measured["tid"]]
        by_child = [record["context"] for record in woken if record["tid"] == child]
        # Not each time: what is still ready need not be woken, which on a busy machine it often is.
        self.assertGreater(by_child.count("thread"), measured["switches"] / 20)
        self.assertLess(sum(context in INTERRUPTS for context in by_child),
                        by_child.count("thread") / 2)
        # Of ten. On a busy machine the kernel lets a thread of its own end a timer.
        self.assertGreater(sum(record["context"] in INTERRUPTS for record in woken), 5)

    def test_interrupts_of_user_mode_wake(self):
        """Timers that end while another process computes on the same CPU are not its doing."""
        hog = subprocess.Popen([sys.executable, "-c", "while True: pass"],
                               preexec_fn=lambda: os.sched_setaffinity(0, {0}))
        self.addCleanup(hog.wait)
        self.addCleanup(hog.kill)
        done = self.record("taskset", "-c", "0", self.build("brackets"), "1",
                           options=("--kernel=bpf", "--no-libcall"))
        measured = dict(line.split() for line in done.stdout.splitlines())
        by_hog = [record["context"] for record in self.dump(done.trace, "--type", "WAKING")
                  if record["woken_tid"] == int(measured["tid"]) and record["tid"] == hog.pid]
        self.assertGreater(len(by_hog), 10)
        self.assertLessEqual(set(by_hog), INTERRUPTS)
        self.assertIn("timer", by_hog)

    def test_block_io(self):
        device = os.stat(self.directory).st_dev
        if os.major(device) == 0:
            self.skipTest("the directory for temporary files is on no block device")
        trace = self.record(sys.executable, "-c", DIRECT_WRITER, "20",
                            options=("--kernel=bpf", "--no-libcall", "--block-io")).trace
        records = [r for t in ("BLOCK_IO", "BLOCK_IO_END") for r in self.dump(trace, "--type", t)]
        written = [r for r in records if r["operation"] == "write" and r["bytes"] == 4096]
        begun = {r["sector"]: r for r in written if r["type"] == "BLOCK_IO"}
        ended = {r["sector"]: r for r in written if r["type"] == "BLOCK_IO_END"}
        # Others may be under way when the recording ends; the program's own writes are not.
        self.assertGreaterEqual(len(ended), 20)
        self.assertLessEqual(set(ended), set(begun))
        for sector, end in ended.items():
            self.assertEqual(end["error"], 0)
            self.assertEqual((end["tid"], end["device"]),
                             (begun[sector]["tid"], begun[sector]["device"]))
            self.assertGreater(end["time_ns"], begun[sector]["time_ns"])
        # The view of what happens has the thread's requests, within the functions that made them.
        shown = collections.Counter((e["type"], e["tid"]) for e in self.report(trace, "flow")["flow"]
                                    if e.get("type", "").startswith("BLOCK_IO"))
        own = {r["tid"] for r in begun.values()}
        self.assertEqual(len(own), 1)
        for what in ("BLOCK_IO", "BLOCK_IO_END"):
            for tid in own:
                self.assertEqual(shown[what, tid],
                                 sum(r["type"] == what and r["tid"] == tid for r in records))

    def test_the_recorder_sleeps(self):
        """While nothing happens. The kernel can't wait on the memory of a BPF map: a recorder that
        tries takes a whole CPU."""
        before = os.times()
        self.record("sleep", "5", options=("--kernel",))  # its start may take a second of the CPU
        after = os.times()
        used = (after.children_user + after.children_system -
                before.children_user - before.children_system)
        self.assertLess(used, 0.5 * (after.elapsed - before.elapsed))

    @cases.in_gate
    def test_a_program_without_calls(self):
        """It has its life and its times on and off the CPU all the same."""
        trace = self.record("sleep", "0.2", options=("--kernel", "--no-libcall")).trace
        thread, = self.report(trace, "threads")["threads"]
        self.assertEqual(thread["name"], "sleep")
        blocked = sum(s["duration_ns"] for s in thread["states"] if s["state"] == "blocked")
        self.assertGreaterEqual(blocked, 0.2e9)
        tree, = self.report(trace, "tree")["threads"]
        self.assertIn("[loader]", [child["name"] for child in tree["root"]["children"]])
        rows = self.report(trace, "log-rt")["log_rt"]
        self.assertGreater(sum(row["ds"] for row in rows), 0)

    def test_names_of_threads_that_are_not_recorded(self):
        trace = self.directory / "foreign.data"
        with subprocess.Popen([support.ARCTRACE, "record", "--kernel", "-o", trace, "--", "cat"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True) as cat:
            # Not before cat waits for its input: the recorder's start may take long.
            cat.stdin.write("begin\n")
            cat.stdin.flush()
            self.assertEqual(cat.stdout.readline(), "begin\n")
            with subprocess.Popen(["bash", "-c", "exec -a feeder sh -c "
                                   "'for i in 1 2 3 4 5; do sleep 0.1; echo line; done'"],
                                  stdout=cat.stdin):
                pass
            cat.communicate()
        names = self.dump(trace, "--type", "NAMED")
        named = {r["name"] for r in names}
        self.assertIn("sh", named)
        # Also those that existed before and only had a CPU before or after a recorded thread.
        own = {r["tid"] for r in self.dump(trace, "--type", "FORKED,EXECED,EXITED")}
        switches = self.dump(trace, "--type", "SWITCH")
        foreign = {r["next_tid"] for r in switches} | {r["tid"] for r in switches}
        self.assertEqual(foreign - own - {0} - {r["tid"] for r in names}, set())
        text = subprocess.run([support.ARCTRACE, "report", trace, "--view=wakers"], text=True,
                              stdout=subprocess.PIPE, check=True).stdout
        self.assertRegex(text, r"\bsh \d+/\d+")

    def test_nothing_of_the_recorder(self):
        with subprocess.Popen([support.ARCTRACE, "record", "--kernel", "--syscalls", "-o",
                               self.directory / "own.data", "true"],
                              stderr=subprocess.DEVNULL) as recorder:
            recorder.wait()
        tids = {r["tid"] for r in self.dump(self.directory / "own.data", "--type", "SYSCALL")}
        self.assertTrue(tids)
        self.assertNotIn(recorder.pid, tids)
        # Its threads, as all that are not recorded, are seen beside recorded ones only.
        switches = self.dump(self.directory / "own.data", "--type", "SWITCH")
        recorded = {r["child_tgid"] for r in self.dump(self.directory / "own.data",
                                                       "--type", "FORKED")}
        self.assertTrue(switches)
        for switch in switches:
            self.assertTrue({switch["tgid"], switch["next_tgid"]} & recorded, switch)

    def test_losses_by_cpu(self):
        trace, _, printed = self.record_program("--mode=stop", "-b", "64k", "--block-size", "4k")
        lost = [r for r in self.dump(trace, "--type", "LOST") if r["cause"] == "kernel"]
        self.assertGreater(sum(record["count"] for record in lost), 1000)
        self.assertIn(f"kernel {sum(record['count'] for record in lost):,}", printed)
        for record in lost:
            self.assertIn(record["cpu"], range(os.cpu_count()))
            self.assertLess(record["since_ns"], record["time_ns"])

    def test_small_sessions(self):
        """A CPU that switches all the time finds blocks as long as there are free ones."""
        least = f"{min(512 * os.cpu_count(), 16384)}k"
        _, measured, _ = self.record_whole("-b", least, "--block-size", "4k")
        self.assertGreater(measured["switches"], 2000)
        trace, _, _ = self.record_whole("-b", least, "--block-size", "4k", "--mode=overwrite")
        self.assertGreater(len(self.dump(trace, "--type", "SWITCH")), 1000)
        for mode in ("drop", "overwrite"):
            done = arctrace("record", "--kernel", f"--mode={mode}", "-b", "256k", "--block-size",
                            "4k", "-o", self.directory / "none", "--", "true")
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"-b must be at least {least}", done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_processes_of_other_pid_namespaces(self):
        """Two programs that call themselves the same, as nobody else does."""
        contained = ["unshare", "--pid", "--fork", "--mount-proc"]
        tried = subprocess.run([*contained, "true"], stderr=subprocess.PIPE, text=True,
                               check=False)
        if tried.returncode != 0:
            self.skipTest(f"no PID namespaces: {tried.stderr.strip()}")
        both = f"{' '.join(contained)} $0 & {' '.join(contained)} $0; wait"
        for _ in range(5):  # as in test_time_on_and_off_the_cpu, and for loss
            done = self.record("sh", "-c", both, self.program,
                               options=("--kernel=bpf", "--no-libcall"))
            self.assertEqual(done.status, 0, done.stderr)
            measured = [line.split() for line in done.stdout.splitlines()]
            on_cpu = sum(int(value) for name, value in measured if name == "on_cpu_ns")
            functions = self.functions(done.trace)
            if abs(functions["computer"]["cpu_ns"] / on_cpu - 1) < 0.03 and " 0 lost" in done.stderr:
                break
        self.assertIn(" 0 lost", done.stderr)
        self.assertEqual([value for name, value in measured if name == "tid"], ["1", "1"])
        numbered = self.dump(done.trace, "--type", "NUMBERED")
        self.assertEqual([r["own_tid"] for r in numbered], [1, 1, 2, 2])
        self.assertEqual(len({r["pid_namespace"] for r in numbered}), 2)
        slept = sum(int(value) for name, value in measured if name == "slept_ns")
        self.assertEqual(functions["sleeper"]["calls"], 2)
        self.assertGreater(functions["sleeper"]["off_cpu_ns"], 0.9 * slept)
        self.assertLessEqual(functions["sleeper"]["off_cpu_ns"], slept)
        self.assertAlmostEqual(functions["computer"]["cpu_ns"] / on_cpu, 1, delta=0.03)

    def test_user_and_kernel_stamps_are_in_order(self):
        """What the kernel stamps lies between the user's stamps, also seconds later."""
        self.check_brackets(self.build("brackets"),
                            120 if os.environ.get("ARCTRACE_TEST_LONG") else 3)

    def test_stamps_are_in_order_while_the_clock_is_slewed(self):
        """The kernel's clock changes its rate by 1000 ppm every now and then."""
        changes = 20 if os.environ.get("ARCTRACE_TEST_LONG") else 2
        program = self.build("brackets")
        helper = self.directory / "slew"
        subprocess.run(["gcc", "-O1", SOURCES / "slew.c", "-o", helper], check=True)
        # The rate is to be steady for a while after the start and before the end.
        slew = subprocess.Popen([helper, "3000", *["2000"] * (changes - 1)], text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            state = slew.stdout.readline().strip()
            if state != "slewing":
                self.skipTest(f"the clock's rate can't be changed: {state}")
            self.check_brackets(program, 2 * changes + 3)
        finally:
            slew.stdin.close()  # however we end, it makes the rate what it was
            slew.stdout.close()
            slew.wait()

    def check_brackets(self, program, seconds):
        done = self.record(program, str(seconds),
                           options=("--kernel=bpf", "--no-libcall", "--syscalls"))
        measured = dict(line.split() for line in done.stdout.splitlines())
        inside = None
        brackets = 0
        for record in self.dump(done.trace):
            if record["type"] == "ENTER" and record["function"] == "bracket":
                inside = []
            elif record["type"] == "EXIT" and inside is not None:
                self.assertEqual(inside, ["SYSCALL", "SYSCALL_END"])
                inside = None
                brackets += 1
            elif record["tid"] == int(measured["tid"]) and record["type"].startswith("SYSCALL"):
                if inside is not None:
                    inside.append(record["type"])
                else:
                    self.assertNotEqual(record.get("number"), int(measured["syscall"]))
        self.assertEqual(brackets, int(measured["brackets"]))

    def test_killed_recorder(self):
        """The program goes on, what it wrote can be had, and a message says where."""
        recorder = subprocess.Popen(
            [support.ARCTRACE, "record", "-o", self.directory / "cut", "--kernel=bpf",
             "--no-libcall", "-b", "8M", "--", sys.executable, "-c", WRITER],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(recorder.stdin.close)
        self.addCleanup(recorder.stdout.close)
        self.addCleanup((self.directory / "cut").unlink, missing_ok=True)
        session = recorder.stdout.readline().rstrip()
        self.addCleanup(lambda: os.path.exists(session) and os.unlink(session))
        self.assertTrue(session.startswith("/run/arctrace/"), session)
        recorder.kill()
        recorder.wait()
        recorder.stdin.write("\n")
        recorder.stdin.flush()
        self.assertEqual(recorder.stdout.readline(), "done\n")
        self.assertRegex(arctrace("list").stdout, f"{session} .* 1 writers  left behind")
        self.assertEqual([s["alive"] for s in self.info(session)["buffer"]["slots"]], [True])
        recorder.stdin.write("\n")
        recorder.stdin.flush()
        self.assertEqual(recorder.stdout.read(), "")  # until it has ended
        trace = self.directory / "recovered.data"
        done = arctrace("recover", session, "-o", trace)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_clean(trace)
        self.assertEqual(len(self.dump(trace, "--type", "INSTANT")), 1500)
        self.assertGreater(len(self.dump(trace, "--type", "SWITCH")), 0)
        done = arctrace("record", "-o", self.directory / "next", "--kernel=bpf", "--", "true")
        # The first of them is named, which may be another test's.
        self.assertRegex(done.stderr, f"left behind by killed recorders?: run arctrace recover ({session}|/run/arctrace/)")
        self.assertEqual(arctrace("destroy", session).returncode, 0)
        self.assertFalse(os.path.exists(session))
        done = arctrace("record", "-o", self.directory / "next", "--kernel=bpf", "--", "true")
        self.assertNotIn(session, done.stderr)


@unittest.skipIf(NO_KERNEL, NO_KERNEL or "")
class KernelFramesTest(ProgramTest):
    """What the kernel does is in frames of the thread for which it does it."""

    PROGRAM = "states"

    def children(self, trace, name):
        """What the function calls, and how often."""
        arcs = {arc["name"]: arc for arc in self.report(trace, "arcs")["arcs"]}
        return {child["name"]: child["calls"] for child in arcs[name]["children"]}

    @cases.in_gate
    def test_system_calls(self):
        trace, _, _ = self.record_whole("--syscalls", arguments=["calls"])
        self.assertEqual(self.children(trace, "caller"), {"K:getppid": 1000})
        call = self.functions(trace)["K:getppid"]
        self.assertEqual(call["module"], "[kernel]")
        self.assertNotIn("marks", call)
        self.assertGreater(call["cum_ns"], 0)

    def test_page_faults(self):
        trace, measured, _ = self.record_whole("--page-faults", arguments=["faults"])
        faults = self.children(trace, "toucher")["K:page fault"]
        self.assertGreaterEqual(faults, measured["pages"])
        # A few more of the hooks that come before the entry, where the thread begins a page of the buffer.
        self.assertLessEqual(abs(measured["faults"] - faults), 3)
        self.assertEqual(self.functions(trace)["K:page fault"]["cum_ns"], 0)

    def test_who_releases_a_mutex_wakes_who_waits_for_it(self):
        trace, measured, _ = self.record_whole("--syscalls", arguments=["mutex"])
        rows = [row for row in self.report(trace, "wakers")["wakers"]
                if "release" in row["waker"]["path"] and "take" in row["woken"]["path"]]
        self.assertEqual([row["waker"]["path"][-1] for row in rows], ["K:futex"])
        self.assertEqual([row["woken"]["path"][-1] for row in rows], ["K:futex"])
        # Now and then the waker comes before the other has left its CPU.
        self.assertGreater(rows[0]["wake_ups"], 0.8 * measured["rounds"])
        self.assertLessEqual(rows[0]["wake_ups"], measured["rounds"])
        self.assertEqual(rows[0]["waker"]["tid"], measured["tid"])
        waiter = rows[0]["woken"]["tid"]
        blocked = [state for thread in self.report(trace, "threads")["threads"]
                   if thread["tid"] == waiter for state in thread["states"]
                   if state["state"] == "blocked" and "take" in state["path"]]
        woken = [state for state in blocked if state.get("waker_tid") == measured["tid"]]
        self.assertEqual(len(woken), rows[0]["wake_ups"])
        self.assertEqual(sum(state["duration_ns"] for state in woken), rows[0]["blocked_ns"])

    def test_two_on_one_cpu_are_preempted(self):
        trace, measured, _ = self.record_whole(arguments=["hogs"])
        threads = {t["tid"]: t for t in self.report(trace, "threads")["threads"]}
        for tid in (measured["tid"], measured["child"]):
            hog = threads[tid]
            self.assertGreater(hog["preempted_ns"], 0.3 * hog["running_ns"])
            self.assertIn("preempted", [s.get("reason") for s in hog["states"]])
            end = None
            for state in hog["states"]:  # without gaps
                self.assertEqual(state["start_ns"], end or state["start_ns"])
                end = state["start_ns"] + state["duration_ns"]
        hogs = [row for row in self.report(trace, "invocations")["invocations"]
                if row["name"] == "hog"]
        for row in hogs:
            self.assertGreater(row["ready_ns"], 0.3 * row["cpu_ns"])
            self.assertEqual(row["cpu_ns"] + row["off_cpu_ns"], row["delta_ns"])

    @cases.in_gate
    def test_without_the_kernels_records(self):
        done = self.record(self.program, "calls", options=("--no-libcall",))
        for option in ("--clock=cpu", "--clock=off-cpu", "--view=threads", "--view=wakers",
                       "--all-threads"):
            asked = subprocess.run([support.ARCTRACE, "report", done.trace, option],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   check=False)
            self.assertEqual(asked.returncode, 2)
            self.assertEqual(asked.stdout, "")
            self.assertRegex(asked.stderr, rf"^arctrace: [^\n]+ {option} needs[^\n]+\n$")
        names = [f["name"] for f in self.report(done.trace, "flat", "--sort=name")["functions"]]
        self.assertEqual(names, sorted(names))
        self.assertIn("processes", self.report(done.trace, "flat", "--per=process"))
        for wrong in (["--clock=cpu", "--view=flow"], ["--view=threads", "--sort=calls"],
                      ["--view=wakers", "--sort=entry"], ["--view=threads", "--merge"]):
            asked = subprocess.run([support.ARCTRACE, "report", done.trace, *wrong],
                                   stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual(asked.returncode, 2)
            self.assertRegex(asked.stderr, r"^arctrace: report: [^\n]+\n$")


if __name__ == "__main__":
    cases.main()
