"""Time on and off the CPU by perf's events, where BPF is not permitted: as root and as nobody."""
import contextlib
import ctypes
import errno
import json
import os
import pathlib
import platform
import signal
import struct
import subprocess
import sys
import unittest

import cases
import support

SOURCES = pathlib.Path(__file__).parent / "kernel"
NOBODY = {"user": 65534, "group": 65534, "extra_groups": []}
SYSCALLS = {"x86_64": {"perf_event_open": 298, "bpf": 321},
            "aarch64": {"perf_event_open": 241, "bpf": 280}}.get(platform.machine(), {})

# One that nobody may run too.
PYTHON = next((p for p in ("/usr/bin/python3",) if os.access(p, os.X_OK)), sys.executable)

# A mark, a sleep, and so on, on one CPU; prints where it records, and goes on until its input ends.
SLEEPER = support.API + """
import select
tick = name("tick")
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
print(os.environ["ARCTRACE_SESSION"], flush=True)
while not select.select([0], [], [], 0)[0]:
    api.arctrace_instant(tick)
    time.sleep(0.001)
"""

# Writes 1000 records, prints where, goes on when it may, and writes 500 more.
WRITER = support.API + """
ring = name("ring")
for i in range(1000): api.arctrace_instant(ring)
time.sleep(0.2)
print(os.environ["ARCTRACE_SESSION"], flush=True)
sys.stdin.readline()
for i in range(500): api.arctrace_instant(ring)
print("done", flush=True)
sys.stdin.readline()
"""

DESCRIPTORS = """
import os
for fd in os.listdir("/proc/self/fd"):
    try: print(fd, os.readlink(f"/proc/self/fd/{fd}").split("[")[0])
    except OSError: pass
"""


def run(*command, **how):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False, **how)


def forbid(*names):
    """For subprocess' preexec_fn: these system calls fail with EPERM from then on (seccomp)."""
    code = [(0x20, 0, 0, 0)]  # the call's number
    for name in names:
        code += [(0x15, 0, 1, SYSCALLS[name]), (0x06, 0, 0, 0x00050000 | errno.EPERM)]
    code.append((0x06, 0, 0, 0x7FFF0000))
    filters = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in code))
    program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(filters))
    libc = ctypes.CDLL(None, use_errno=True)

    def install():
        kept = filters  # the program has only its address
        if (libc.prctl(38, 1, 0, 0, 0) != 0  # PR_SET_NO_NEW_PRIVS
                or libc.prctl(22, 2, ctypes.c_char_p(program), 0, 0) != 0):  # PR_SET_SECCOMP
            raise OSError(ctypes.get_errno(), "seccomp", kept)
    return install


def obstacle(**how):
    """Why perf's events can't be had, by arctrace's own word; None if they can."""
    tried = run(support.ARCTRACE, "record", "-o", "/dev/null", "--kernel=perf", "--", "true", **how)
    refused = tried.returncode == 2 and "refused" in tried.stderr
    return tried.stderr.strip() if refused else None


NO_PERF = obstacle()
NO_PERF_FOR_NOBODY = ("needs root, to be somebody else" if os.geteuid() != 0
                      else obstacle(**NOBODY))


class PerfCase(support.TraceTest):
    USER = {}  # that records: arguments of subprocess

    def setUp(self):
        super().setUp()
        self.directory.chmod(0o777)

    def build(self, name):
        subprocess.run(["gcc", "-O1", "-finstrument-functions", "-pthread",
                        SOURCES / f"{name}.c", "-o", self.directory / name], check=True)
        return self.directory / name

    def record_as(self, *command, options=(), **how):
        trace = self.directory / "arctrace.data"
        done = run(support.ARCTRACE, "record", "-o", trace, *options, "--", *command,
                   cwd=self.directory, **{**self.USER, **how})
        return support.Recorded(trace, done.returncode, done.stdout, done.stderr)

    def record_program(self, program, *arguments, options=()):
        """(trace, what the program measured, what arctrace printed)."""
        done = self.record_as(program, *arguments,
                              options=("--kernel=perf", "--no-libcall", *options))
        self.assertEqual(done.status, 0, done.stderr)
        measured = {name: int(value) for name, value in
                    (line.split() for line in done.stdout.splitlines())}
        return done.trace, measured, done.stderr

    @contextlib.contextmanager
    def recording(self, code, *options):
        """A Python program under `record`, with pipes; ended after the block."""
        recorder = subprocess.Popen(
            [support.ARCTRACE, "record", "-o", self.directory / "live.data", "--no-libcall",
             "--kernel=perf", *options, "--", PYTHON, "-c", code],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            **self.USER)
        with recorder:
            yield recorder


class Tests:  # of whoever records
    def test_time_on_and_off_the_cpu(self):
        program = self.build("waits")
        # A hypervisor that takes the CPU in the middle of a switch is counted on either side.
        for _ in range(5):
            trace, measured, printed = self.record_program(program)
            functions = {f["name"]: f for f in self.report(trace, "flat")["functions"]}
            if abs(functions["computer"]["cpu_ns"] / measured["on_cpu_ns"] - 1) < 0.03:
                break
        self.assertIn(" 0 lost", printed)
        for function in functions.values():
            self.assertEqual(function["cpu_ns"] + function["off_cpu_ns"], function["cum_ns"])
            self.assertNotIn("ready_ns", function)
        sleeper, computer = functions["sleeper"], functions["computer"]
        self.assertGreater(sleeper["off_cpu_ns"], 0.9 * measured["slept_ns"])
        self.assertLessEqual(sleeper["off_cpu_ns"], measured["slept_ns"])
        self.assertGreaterEqual(sleeper["switches"], 10)
        self.assertAlmostEqual(computer["cpu_ns"] / measured["on_cpu_ns"], 1, delta=0.03)
        self.assertGreater(computer["cpu_ns"], 0.95 * measured["computed_ns"])
        on, off = ({f["name"]: f for f in
                    self.report(trace, "flat", f"--clock={clock}")["functions"]}
                   for clock in ("cpu", "off-cpu"))
        for name, function in functions.items():
            self.assertEqual(on[name]["cum_ns"], function["cpu_ns"])
            self.assertEqual(off[name]["cum_ns"], function["off_cpu_ns"])

    def test_every_switch_is_there(self):
        trace, measured, _ = self.record_program(self.build("waits"))
        begun = next(record["time_ns"] for record in self.dump(trace, "--type", "ENTER")
                     if record["tid"] == measured["tid"])
        records = [record for kind in ("SWITCH", "SWITCH_IN")
                   for record in self.dump(trace, "--type", kind)]
        own = sorted((record["time_ns"], record["type"]) for record in records
                     if record["tid"] == measured["tid"])
        left = sum(kind == "SWITCH" and time >= begun for time, kind in own)
        counted = measured["switches"] - measured["switches_before"]
        self.assertGreater(counted, 2000)
        self.assertGreaterEqual(left, counted)
        # Some more before its first count and after its last one.
        self.assertLessEqual(left, counted + 50)
        # A thread that leaves a CPU comes back before it leaves one again.
        kinds = [kind for _, kind in own]
        for first, second in zip(kinds, kinds[1:]):
            self.assertNotEqual(first, second)
        self.assertTrue(all("next_tid" not in record for record in records))
        child = self.dump(trace, "--type", "FORKED")[-1]["child_tid"]
        self.assertGreater(sum(record["tid"] == child for record in records), 2000)
        self.assertEqual(self.dump(trace, "--type", "EXECED")[0]["program"], "waits")
        exited = [record["tid"] for record in self.dump(trace, "--type", "EXITED")]
        self.assertEqual(sorted(exited), sorted([child, measured["tid"]]))
        # Nobody but the command and its child.
        self.assertEqual({record["tid"] for record in records}, {child, measured["tid"]})

    def test_two_on_one_cpu_are_preempted(self):
        trace, measured, _ = self.record_program(self.build("states"), "hogs")
        threads = {t["tid"]: t for t in self.report(trace, "threads")["threads"]}
        for tid in (measured["tid"], measured["child"]):
            hog = threads[tid]
            self.assertGreater(hog["preempted_ns"], 0.3 * hog["running_ns"])
            self.assertNotIn("ready_ns", hog)
            ready = [state for state in hog["states"] if state["state"] == "ready"]
            self.assertEqual({state["reason"] for state in ready}, {"preempted"})
            end = None
            for state in hog["states"]:  # without gaps
                self.assertEqual(state["start_ns"], end or state["start_ns"])
                end = state["start_ns"] + state["duration_ns"]
        for row in self.report(trace, "invocations")["invocations"]:
            self.assertEqual(row["cpu_ns"] + row["off_cpu_ns"], row["delta_ns"])

    @cases.in_gate
    def test_the_trace_says_so(self):
        trace, _, _ = self.record_program(self.build("states"), "calls")
        self.assertEqual(self.info(trace)["session"]["kernel_records"], "perf")
        text = run(support.ARCTRACE, "info", trace).stdout
        self.assertIn("kernel: recorded by perf events", text)
        asked = run(support.ARCTRACE, "report", trace, "--view=wakers")
        self.assertEqual((asked.returncode, asked.stdout), (2, ""))
        self.assertRegex(asked.stderr, r"^arctrace: [^\n]+ has no wake-ups[^\n]+\n$")
        asked = run(support.ARCTRACE, "report", trace, "--view=threads")
        self.assertEqual(asked.returncode, 0, asked.stderr)
        self.assertIn("blocked or woken", asked.stdout)

    def test_a_snapshot_has_both_up_to_the_same_moment(self):
        with self.recording(SLEEPER, "--mode=overwrite", "-b", "256k",
                            "--block-size=4k") as recorder:
            recorder.stdout.readline()
            for _ in range(2):
                # By then more has happened than the buffer holds of it, at the second time.
                subprocess.run(["sleep", "2"], check=True)
                recorder.send_signal(signal.SIGUSR2)
                line = recorder.stderr.readline()
                self.assertIn("snapshot: ", line)
            recorder.stdin.write("x")
        self.assertEqual(recorder.returncode, 0)
        for name in ("live.data.2", "live.data"):
            trace = self.directory / name
            ticks = [r["time_ns"] for r in self.dump(trace, "--type", "INSTANT")]
            pid = self.info(trace)["processes"][0]["pid"]
            left = [r for r in self.dump(trace, "--type", "SWITCH") if r["tid"] == pid]
            gone = [r["time_ns"] for r in left if r["cpu"] == left[-1]["cpu"]]
            begin, end = max(ticks[0], gone[0]), gone[-1]
            pairs = [(a, b) for a, b in zip(ticks, ticks[1:]) if begin <= a and b <= end]
            # All but what it did while the buffer was being copied.
            self.assertGreater(len(pairs), 200)
            self.assertLess(sum(tick > end for tick in ticks), 0.1 * len(ticks))
            # It slept between any two, but for a sleep that was over before it began.
            alone = [pair for pair in pairs
                     if not any(pair[0] < time < pair[1] for time in gone)]
            self.assertLess(len(alone), 0.02 * len(pairs), (name, alone[:5]))
            self.check_clean(trace)
        self.assertGreater(end, ticks[-1])  # of the file at the end: what came last, too

    def test_losses_by_cpu(self):
        trace, _, printed = self.record_program(
            self.build("waits"), options=("--mode=stop", "-b", "64k", "--block-size", "4k"))
        lost = [r for r in self.dump(trace, "--type", "LOST") if r["cause"] == "kernel"]
        self.assertGreater(sum(record["count"] for record in lost), 1000)
        self.assertIn(f"kernel {sum(record['count'] for record in lost):,}", printed)
        for record in lost:
            self.assertIn(record["cpu"], range(os.cpu_count()))
            self.assertLess(record["since_ns"], record["time_ns"])

    def test_the_command_inherits_nothing(self):
        command = (PYTHON, "-c", DESCRIPTORS)
        plain = run(*command, **self.USER)
        with_perf = self.record_as(*command, options=("--kernel=perf", "--no-libcall"))
        self.assertEqual(sorted(with_perf.stdout.splitlines()),
                         sorted(plain.stdout.splitlines()))

    def test_switched_off_and_on(self):
        with self.recording(SLEEPER) as recorder:
            session = recorder.stdout.readline().rstrip()
            for switch in ("--off=kernel", "--on=kernel"):
                subprocess.run(["sleep", "3"], check=True)  # 50 ticks, on a busy machine too
                done = run(support.ARCTRACE, "ctl", session, switch, **self.USER)
                self.assertEqual(done.returncode, 0, done.stderr)
            subprocess.run(["sleep", "3"], check=True)
            recorder.stdin.write("x")
        trace = self.directory / "live.data"
        ticks = [r["time_ns"] for r in self.dump(trace, "--type", "INSTANT")]
        gone = [r["time_ns"] for r in self.dump(trace, "--type", "SWITCH")]
        alone = [not any(a < time < b for time in gone) for a, b in zip(ticks, ticks[1:])]
        self.assertGreater(sum(alone), 50)
        self.assertGreater(len(alone) - sum(alone), 50)
        self.assertLess(sum(alone[:50]), 5)
        self.assertLess(sum(alone[-50:]), 5)

    def test_killed_recorder(self):
        """The program goes on, and what it wrote and perf reported can be had."""
        self.addCleanup((self.directory / "live.data").unlink, missing_ok=True)
        with self.recording(WRITER) as recorder:
            session = recorder.stdout.readline().rstrip()
            self.addCleanup(lambda: os.path.exists(session) and os.unlink(session))
            recorder.kill()
            recorder.wait()
            recorder.stdin.write("\n")
            recorder.stdin.flush()
            self.assertEqual(recorder.stdout.readline(), "done\n")
            recorder.stdin.write("\n")
            recorder.stdin.flush()
            self.assertEqual(recorder.stdout.read(), "")  # until it has ended
        trace = self.directory / "recovered.data"
        done = run(support.ARCTRACE, "recover", session, "-o", trace, **self.USER)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_clean(trace)
        self.assertEqual(len(self.dump(trace, "--type", "INSTANT")), 1500)
        self.assertGreater(len(self.dump(trace, "--type", "SWITCH")), 0)
        self.assertEqual(self.info(trace)["session"]["kernel_records"], "perf")

    def test_what_needs_bpf(self):
        done = self.record_as("true", options=("--kernel=perf", "--syscalls", "--signals"))
        self.assertEqual(done.status, 0)
        self.assertIn("recording without --syscalls, --signals, which need BPF\n", done.stderr)
        done = self.record_as("true", options=("--kernel=perf",))
        self.assertNotIn("kernel", done.stderr)


@unittest.skipIf(NO_PERF, NO_PERF or "")
class PerfTest(Tests, PerfCase):
    pass


@unittest.skipIf(NO_PERF_FOR_NOBODY, NO_PERF_FOR_NOBODY or "")
class PerfAsNobodyTest(Tests, PerfCase):
    USER = NOBODY

    def test_it_is_what_there_is(self):
        """Without rights: perf's events, and one line reports what is missing and why."""
        done = self.record_as("true", options=("--kernel",))
        self.assertEqual(done.status, 0)
        self.assertRegex(done.stderr, r"(?m)^arctrace: warning: recording the kernel by perf "
                                      r"events, without wake-ups: [^\n]+$")
        self.assertEqual(done.stderr.count("kernel"), 1)
        self.assertEqual(self.info(done.trace)["session"]["kernel_records"], "perf")
        done = self.record_as("true", options=("--kernel", "--page-faults"))
        self.assertIn("without wake-ups, --page-faults: ", done.stderr)
        done = self.record_as("true", options=("--kernel=require",))
        self.assertEqual(done.status, 0)
        self.assertIn("perf events, without wake-ups: ", done.stderr)
        for options in (["--kernel=bpf"], ["--kernel=require", "--syscalls"]):
            done = self.record_as("true", options=options)
            self.assertEqual(done.status, 2)
            self.assertRegex(done.stderr, rf"^arctrace: {options[0]}: [^\n]+\n$")


@unittest.skipUnless(SYSCALLS, "the numbers of system calls are not known")
class ForbiddenTest(PerfCase):
    @cases.in_gate
    def test_without_bpf_and_perf(self):
        """Neither is to be had: one line, and a recording all the same."""
        forbidden = forbid("bpf", "perf_event_open")
        done = self.record_as("true", options=("--kernel",), preexec_fn=forbidden)
        self.assertEqual(done.status, 0, done.stderr)
        self.assertRegex(done.stderr, r"(?m)^arctrace: warning: recording without the kernel: "
                                      r"[^\n]+; perf_event_open is refused: [^\n]+$")
        self.assertEqual(done.stderr.count("the kernel"), 1)  # the reason may name kernel.perf_...
        self.assertIsNone(self.info(done.trace)["session"]["kernel_records"])
        for use in ("perf", "require"):
            done = self.record_as("true", options=(f"--kernel={use}",), preexec_fn=forbidden)
            self.assertEqual(done.status, 2)
            self.assertRegex(done.stderr, rf"^arctrace: --kernel={use}: [^\n]+\n$")

    @unittest.skipIf(NO_PERF, NO_PERF or "")
    def test_without_bpf(self):
        done = self.record_as("true", options=("--kernel",), preexec_fn=forbid("bpf"))
        self.assertEqual(done.status, 0, done.stderr)
        self.assertIn("recording the kernel by perf events", done.stderr)
        text = json.dumps(self.dump(done.trace))
        self.assertIn("EXECED", text)


if __name__ == "__main__":
    cases.main()
