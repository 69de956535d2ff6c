"""Shared code of the tests of the kernel's records: whether the kernel can record here, the programs of kernel/, and
what must hold of their recordings whoever wrote them, BPF or perf events."""

import pathlib
import subprocess

from command import arctrace, read_dump, read_report
from tracing import Recorded, TracedTest

SOURCES = pathlib.Path(__file__).parent / "kernel"
ATTEMPTS = 5


def obstacle():
    """Why the kernel can't write here, by arctrace's own probe; None if it can."""
    tried = arctrace("record", "-o", "/dev/null", "--kernel=bpf", "--", "true")
    for reason in ("no BTF", "are refused", "is refused", "PID namespace"):
        if tried.returncode == 2 and reason in tried.stderr:
            return tried.stderr.strip()
    return None


NO_KERNEL = obstacle()


def build(directory, name):
    """Compiles a program of SOURCES."""
    subprocess.run(["gcc", "-O1", "-finstrument-functions", "-pthread", SOURCES / f"{name}.c", "-o",
                    directory / name], check=True)
    return directory / name


def measured_of(output):
    """The numbers that a program of SOURCES prints."""
    return {name: int(value) for name, value in (line.split() for line in output.splitlines())}


def whole(test, attempt):
    """Repeats `attempt`, which returns a Recorded or a tuple that ends with what arctrace printed, until nothing
    is lost, and returns its result: on a busy machine the recorder may come too late."""
    for _ in range(ATTEMPTS):
        recorded = attempt()
        printed = recorded.stderr if isinstance(recorded, Recorded) else recorded[-1]
        if " 0 lost" in printed:
            return recorded
    test.fail(printed)


class ProgramTest(TracedTest):
    """Tests that record a program of SOURCES."""

    KERNEL = "bpf"
    PROGRAM = None  # its name there

    def setUp(self):
        super().setUp()
        self.program = self.build(self.PROGRAM) if self.PROGRAM else None

    def build(self, name):
        return build(self.directory, name)

    def record_program(self, *options, arguments=(), program=None):
        """(trace, what the program measured, what arctrace printed)."""
        done = self.record(program or self.program, *arguments,
                           options=(f"--kernel={self.KERNEL}", "--no-libcall", *options))
        self.assertEqual(done.status, 0, done.stderr)
        return done.trace, measured_of(done.stdout), done.stderr

    def record_whole(self, *options, **how):
        """record_program(), repeated until nothing is lost."""
        return whole(self, lambda: self.record_program(*options, **how))

    def functions(self, trace, *options):
        return {f["name"]: f for f in read_report(trace, "flat", *options)["functions"]}


def check_switches(test, row, measured, name):
    """How often the thread left its CPU in a call lies between the program's counts within the call and around
    it."""
    test.assertLessEqual(measured[f"{name}_switches_least"], row["switches"], name)
    test.assertLessEqual(row["switches"], measured[f"{name}_switches_most"], name)


def check_time_on_and_off_the_cpu(test, trace, measured):
    """Checks the program waits, of which nothing is lost."""
    functions = {f["name"]: f for f in read_report(trace, "flat")["functions"]}
    for function in functions.values():
        test.assertEqual(function["cpu_ns"] + function["off_cpu_ns"], function["cum_ns"])
    sleeper = functions["sleeper"]
    check_switches(test, sleeper, measured, "sleeper")
    # The program slept for what it asked for, and was back on the CPU before it read the clock.
    test.assertGreater(sleeper["off_cpu_ns"], 0.9 * measured["asked_ns"])
    test.assertLessEqual(sleeper["off_cpu_ns"], measured["slept_ns"])
    calls = sorted((row for row in read_report(trace, "invocations")["invocations"]
                    if row["name"] == "computer"), key=lambda row: row["start_ns"])
    test.assertEqual(len(calls), measured["computations"])
    agreeing = 0
    for i, call in enumerate(calls):
        check_switches(test, call, measured, f"computer_{i}")
        test.assertEqual(call["off_cpu_ns"] > 0, call["switches"] > 0)
        test.assertEqual(call["cpu_ns"] + call["off_cpu_ns"], call["delta_ns"])
        least, most = (measured[f"computer_{i}_on_cpu_ns_{end}"] for end in ("least", "most"))
        agreeing += 0.99 * least < call["cpu_ns"] < 1.01 * most
    test.assertGreater(functions["computer"]["cpu_ns"], 0.95 * measured["computations"] * measured["compute_ns"])
    # A hypervisor may take the CPU in the middle of a switch; the kernel counts that time on either side, in the
    # program's account and in its records, but hardly in each call.
    test.assertGreaterEqual(agreeing, 3, (calls, measured))
    on, off = ({f["name"]: f for f in read_report(trace, "flat", f"--clock={clock}")["functions"]}
               for clock in ("cpu", "off-cpu"))
    for name, function in functions.items():
        test.assertEqual(on[name]["cum_ns"], function["cpu_ns"])
        test.assertEqual(off[name]["cum_ns"], function["off_cpu_ns"])
        test.assertEqual(on[name]["base_ns"] + off[name]["base_ns"], function["base_ns"])
    return functions


def check_every_switch(test, trace, measured):
    """Checks the program waits, of which nothing is lost: between its counts, which are made in frames, there are
    as many switches as it says."""
    own = [record for record in read_dump(trace, "--type", "ENTER,EXIT,SWITCH")
           if record["tid"] == measured["tid"]]
    times = [record["time_ns"] for record in own]
    test.assertEqual(times, sorted(times))
    counts = []  # entry and exit of each
    for record in own:
        if record["type"] == "ENTER" and record["function"] == "counted":
            counts.append([record["time_ns"]])
        elif record["type"] == "EXIT" and counts and len(counts[-1]) == 1:
            counts[-1].append(record["time_ns"])
    (first_begins, first_ends), (last_begins, last_ends) = counts
    left = [record["time_ns"] for record in own if record["type"] == "SWITCH"]
    counted = measured["switches"] - measured["switches_before"]
    test.assertGreater(counted, measured["rounds"])
    test.assertLessEqual(sum(first_ends < time < last_begins for time in left), counted)
    test.assertGreaterEqual(sum(first_begins < time < last_ends for time in left), counted)
    return left, (last_begins, last_ends)


def running(thread):
    """[(begin, end)] of the states of a thread of the view threads."""
    return [(s["start_ns"], s["start_ns"] + s["duration_ns"]) for s in thread["states"] if s["state"] == "running"]


def overlap(first, second):
    """How long both are in such a state; each argument is a list of (begin, end)."""
    return sum(max(0, min(a[1], b[1]) - max(a[0], b[0])) for a in first for b in second)


def check_two_on_one_cpu(test, trace, measured):
    """Checks the program states with the argument hogs: each process was preempted as often as it counted, and
    while one was running the other one was not."""
    threads = {t["tid"]: t for t in read_report(trace, "threads")["threads"]}
    calls = {row["tid"]: row for row in read_report(trace, "invocations")["invocations"] if row["name"] == "hog"}
    both = measured["tid"], measured["child"]
    test.assertEqual(set(calls), set(both))
    test.assertEqual(overlap(*(running(threads[tid]) for tid in both)), 0)
    for tid, counted in zip(both, (measured["preempted"], measured["child_preempted"])):
        hog, call = threads[tid], calls[tid]
        preempted = [state for state in hog["states"] if state.get("reason") == "preempted"]
        test.assertGreaterEqual(len(preempted), counted)
        test.assertEqual({state["state"] for state in preempted}, {"ready"})
        test.assertEqual(sum(state["duration_ns"] for state in preempted), hog["preempted_ns"])
        end = None
        for state in hog["states"]:  # without gaps
            test.assertEqual(state["start_ns"], end or state["start_ns"])
            end = state["start_ns"] + state["duration_ns"]
        # This process had no CPU while the other one had it.
        other, = (one for one in both if one != tid)
        span = [(call["start_ns"], call["stop_ns"])]
        test.assertGreater(overlap(span, running(threads[other])), 0)
        test.assertGreaterEqual(call["off_cpu_ns"], overlap(span, running(threads[other])))
        test.assertEqual(call["cpu_ns"], overlap(span, running(hog)))
        test.assertEqual(call["cpu_ns"] + call["off_cpu_ns"], call["delta_ns"])
    return threads, [calls[tid] for tid in both]


class BracketsTest(ProgramTest):
    """Tests of frames around one system call each."""

    PROGRAM = "brackets"

    def check_brackets(self, seconds):
        """The kernel's stamps lie between the user's stamps."""
        trace, measured, _ = self.record_whole("--syscalls", arguments=[str(seconds)])
        inside = None
        brackets = 0
        for record in read_dump(trace):
            if record["type"] == "ENTER" and record["function"] == "bracket":
                inside = []
            elif record["type"] == "EXIT" and inside is not None:
                self.assertEqual(inside, ["SYSCALL", "SYSCALL_END"])
                inside = None
                brackets += 1
            elif record["tid"] == measured["tid"] and record["type"].startswith("SYSCALL"):
                if inside is not None:
                    inside.append(record["type"])
                else:
                    self.assertNotEqual(record.get("number"), measured["syscall"])
        self.assertEqual(brackets, measured["brackets"])
