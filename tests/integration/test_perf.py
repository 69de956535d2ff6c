"""Time on and off the CPU by perf's events, where BPF is not permitted: as root and as nobody."""
import bisect
import contextlib
import ctypes
import errno
import json
import os
import platform
import signal
import struct
import subprocess
import sys
import time
import unittest

import cases
import kernel_programs
import states
import support
from command import LEFT_BEHIND, arctrace, lines_without, read, read_dump, read_info, run, start_arctrace

NOBODY = {"user": 65534, "group": 65534, "extra_groups": []}
SYSCALLS = {"x86_64": {"perf_event_open": 298, "bpf": 321},
            "aarch64": {"perf_event_open": 241, "bpf": 280}}.get(platform.machine(), {})

# An interpreter that the user nobody may run, too.
PYTHON = next((p for p in ("/usr/bin/python3",) if os.access(p, os.X_OK)), sys.executable)

# Sleeps between marks, on one CPU. "slept": it has left its CPU since the mark before; "awake": the time was over
# before it had. Prints its session, and "more" after as many sleeps as a line of its input asks for; ends when its
# input does.
SLEEPER = support.API + """
import resource
marks = [name("awake"), name("slept")]
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
print(os.environ["ARCTRACE_SESSION"], flush=True)
for line in iter(sys.stdin.readline, ""):
    for i in range(int(line)):
        before = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
        time.sleep(0.001)
        api.arctrace_instant(marks[resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw > before])
    print("more", flush=True)
"""

# Writes 1000 records, prints where, waits for a line, and writes 500 more.
WRITER = support.API + """
ring = name("ring")
for i in range(1000): api.arctrace_instant(ring)
time.sleep(0.01)
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


def forbid(*names):
    """A function for subprocess' preexec_fn: these system calls fail with EPERM from then on (seccomp)."""
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
    """The reason why perf's events are refused, as arctrace gives it; None if they are available."""
    tried = arctrace("record", "-o", "/dev/null", "--kernel=perf", "--", "true", **how)
    refused = tried.returncode == 2 and "refused" in tried.stderr
    return tried.stderr.strip() if refused else None


NO_PERF = obstacle()
NO_PERF_FOR_NOBODY = ("needs root, to be somebody else" if os.geteuid() != 0
                      else obstacle(**NOBODY))


class PerfCase(kernel_programs.ProgramTest):
    KERNEL = "perf"
    USER = {}  # the user that records, as arguments of subprocess

    def setUp(self):
        super().setUp()
        self.directory.chmod(0o777)

    def record(self, *command, **how):
        return super().record(*command, **{**self.USER, **how})

    @contextlib.contextmanager
    def recording(self, code, *options):
        """A Python program under `record`, with pipes; ended after the block."""
        recorder = start_arctrace("record", "-o", self.directory / "live.data", "--no-libcall", "--kernel=perf",
                                  *options, "--", PYTHON, "-c", code, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, **self.USER)
        with recorder:
            yield recorder


class Tests:  # the same for each user that records
    def test_time_on_and_off_the_cpu(self):
        trace, measured, _ = self.record_whole(program=self.build("waits"))
        for function in kernel_programs.check_time_on_and_off_the_cpu(self, trace, measured).values():
            self.assertNotIn("ready_ns", function)

    @cases.in_gate
    def test_every_switch_is_there(self):
        trace, measured, _ = self.record_whole(program=self.build("waits"))
        kernel_programs.check_every_switch(self, trace, measured)
        records = read_dump(trace, "--type", "SWITCH,SWITCH_IN")
        # A thread that leaves a CPU comes back before it leaves one again.
        kinds = [record["type"] for record in records if record["tid"] == measured["tid"]]
        for first, second in zip(kinds, kinds[1:]):
            self.assertNotEqual(first, second)
        self.assertTrue(all("next_tid" not in record for record in records))
        child = read_dump(trace, "--type", "FORKED")[-1]["child_tid"]
        self.assertEqual(child, measured["child"])
        self.assertGreater(sum(record["tid"] == child for record in records), measured["rounds"])
        self.assertEqual(read_dump(trace, "--type", "EXECED")[0]["program"], "waits")
        exited = [record["tid"] for record in read_dump(trace, "--type", "EXITED")]
        self.assertEqual(sorted(exited), sorted([child, measured["tid"]]))
        # Only the command and its child are there.
        self.assertEqual({record["tid"] for record in records}, {child, measured["tid"]})

    def test_two_on_one_cpu_are_preempted(self):
        trace, measured, _ = self.record_whole(program=self.build("states"), arguments=["hogs"])
        threads, _ = kernel_programs.check_two_on_one_cpu(self, trace, measured)
        for tid in (measured["tid"], measured["child"]):
            self.assertNotIn("ready_ns", threads[tid])
            ready = [state for state in threads[tid]["states"] if state["state"] == "ready"]
            self.assertEqual({state["reason"] for state in ready}, {"preempted"})

    @cases.in_gate
    def test_the_trace_says_so(self):
        trace, _, _ = self.record_program(program=self.build("states"), arguments=["calls"])
        self.assertEqual(read_info(trace)["session"]["kernel_records"], "perf")
        text = arctrace("info", trace).stdout
        self.assertIn("kernel: recorded by perf events", text)
        asked = arctrace("report", trace, "--view=wakers")
        self.assertEqual((asked.returncode, asked.stdout), (2, ""))
        self.assertRegex(asked.stderr, r"^arctrace: [^\n]+ has no wake-ups[^\n]+\n$")
        asked = arctrace("report", trace, "--view=threads")
        self.assertEqual(asked.returncode, 0, asked.stderr)
        self.assertIn("blocked or woken", asked.stdout)

    def sleep_more(self, recorder, times):
        """Lets the program SLEEPER continue until it waits again."""
        recorder.stdin.write(f"{times}\n")
        recorder.stdin.flush()
        self.assertEqual(recorder.stdout.readline(), "more\n")

    def sleeps_of(self, trace):
        """[(begin, end, how often it left its CPU)] of the times between two marks of SLEEPER in which it says that
        it slept."""
        marks = [(r["time_ns"], r["name"]) for r in read_dump(trace, "--type", "INSTANT")]
        pid = read_info(trace)["processes"][0]["pid"]
        left = [r["time_ns"] for r in read_dump(trace, "--type", "SWITCH") if r["tid"] == pid]
        return [(begin, end, bisect.bisect_left(left, end) - bisect.bisect_right(left, begin))
                for (begin, _), (end, mark) in zip(marks, marks[1:]) if mark == "slept"], left

    def test_a_snapshot_has_both_up_to_the_same_moment(self):
        asked_ns = []  # a snapshot must have all that happened before this time
        with self.recording(SLEEPER, "--mode=overwrite", "-b", "256k",
                            "--block-size=4k") as recorder:
            recorder.stdout.readline()
            # The second time more happens than the buffer can store.
            for times in (500, 3000):
                self.sleep_more(recorder, times)
                recorder.stdin.write("1000\n")
                recorder.stdin.flush()
                time.sleep(0.1)  # the recorder may be at work, or not
                asked_ns.append(time.monotonic_ns())
                recorder.send_signal(signal.SIGUSR2)
                self.assertIn("snapshot: ", recorder.stderr.readline())
                self.assertEqual(recorder.stdout.readline(), "more\n")
            recorder.stdin.close()
            asked_ns.append(time.monotonic_ns())
            recorder.wait()
        self.assertEqual(recorder.returncode, 0)
        for name, asked in zip(("live.data.1", "live.data.2", "live.data"), asked_ns):
            trace = self.directory / name
            asked -= read_info(trace)["session"]["start_monotonic_ns"]
            sleeps, left = self.sleeps_of(trace)
            sleeps = [(begin, end, count) for begin, end, count in sleeps
                      if begin >= left[0] and end <= max(asked, left[-1])]
            self.assertGreater(len(sleeps), 100, name)
            self.assertEqual([sleep for sleep in sleeps if sleep[2] == 0], [], name)
            read("check", trace)

    def test_losses_by_cpu(self):
        trace, _, printed = self.record_program(
            "--mode=stop", "-b", "64k", "--block-size", "4k", program=self.build("waits"))
        lost = [r for r in read_dump(trace, "--type", "LOST") if r["cause"] == "kernel"]
        self.assertGreater(sum(record["count"] for record in lost), 1000)
        self.assertIn(f"kernel {sum(record['count'] for record in lost):,}", printed)
        for record in lost:
            self.assertIn(record["cpu"], range(os.cpu_count()))
            self.assertLess(record["since_ns"], record["time_ns"])

    def test_the_command_inherits_nothing(self):
        command = (PYTHON, "-c", DESCRIPTORS)
        plain = run(*command, **self.USER)
        with_perf = self.record(*command, options=("--kernel=perf", "--no-libcall"))
        self.assertEqual(sorted(with_perf.stdout.splitlines()),
                         sorted(plain.stdout.splitlines()))

    def test_switched_off_and_on(self):
        changes_ns = []
        with self.recording(SLEEPER) as recorder:
            session = recorder.stdout.readline().rstrip()
            self.sleep_more(recorder, 60)
            for switch in ("--off=kernel", "--on=kernel"):
                # Events that perf has and the recorder has not read are dropped, too.
                changes_ns.append(time.monotonic_ns())
                states.wait_for_rounds(recorder.pid)
                done = arctrace("ctl", session, switch, **self.USER)
                self.assertEqual(done.returncode, 0, done.stderr)
                states.wait_for_rounds(recorder.pid)  # the recorder has seen the change
                changes_ns.append(time.monotonic_ns())
                self.sleep_more(recorder, 60)
            recorder.stdin.close()
            self.assertIn(" 0 lost", recorder.stderr.read())
        trace = self.directory / "live.data"
        start_ns = read_info(trace)["session"]["start_monotonic_ns"]
        before, off, on, after = (time_ns - start_ns for time_ns in changes_ns)
        sleeps, _ = self.sleeps_of(trace)
        recorded = [count > 0 for begin, end, count in sleeps if end <= before or begin >= after]
        unrecorded = [count > 0 for begin, end, count in sleeps if begin >= off and end <= on]
        self.assertGreater(len(recorded), 60)
        self.assertEqual(set(recorded), {True})
        self.assertGreater(len(unrecorded), 30)
        self.assertEqual(set(unrecorded), {False})

    def test_killed_recorder(self):
        """The program continues, and its records and perf's can be recovered."""
        self.addCleanup((self.directory / "live.data").unlink, missing_ok=True)
        with self.recording(WRITER) as recorder:
            session = recorder.stdout.readline().rstrip()
            self.addCleanup(lambda: os.path.exists(session) and os.unlink(session))
            states.wait_for_rounds(recorder.pid)  # the recorder has read what perf had by then
            recorder.kill()
            recorder.wait()
            recorder.stdin.write("\n")
            recorder.stdin.flush()
            self.assertEqual(recorder.stdout.readline(), "done\n")
            recorder.stdin.write("\n")
            recorder.stdin.flush()
            self.assertEqual(recorder.stdout.read(), "")  # until it has ended
        trace = self.directory / "recovered.data"
        # The recorder's file has what it could write before it was killed.
        done = arctrace("recover", session, f"--merge={self.directory / 'live.data'}", "-o", trace, **self.USER)
        self.assertEqual(done.returncode, 0, done.stderr)
        read("check", trace)
        self.assertEqual(len(read_dump(trace, "--type", "INSTANT")), 1500)
        self.assertGreater(len(read_dump(trace, "--type", "SWITCH")), 0)
        self.assertEqual(read_info(trace)["session"]["kernel_records"], "perf")

    @staticmethod
    def before_summary(done):
        """What `record` said before its last line, which counts the records of the kernel."""
        return "".join(lines_without(done.stderr, LEFT_BEHIND)[:-1])

    def test_what_needs_bpf(self):
        done = self.record("true", options=("--kernel=perf", "--syscalls", "--signals"))
        self.assertEqual(done.status, 0)
        self.assertIn("recording without --syscalls, --signals, which need BPF\n", done.stderr)
        done = self.record("true", options=("--kernel=perf",))
        self.assertNotIn("kernel", self.before_summary(done))


@unittest.skipIf(NO_PERF, NO_PERF or "")
class PerfTest(Tests, PerfCase):
    pass


@unittest.skipIf(NO_PERF_FOR_NOBODY, NO_PERF_FOR_NOBODY or "")
class PerfAsNobodyTest(Tests, PerfCase):
    USER = NOBODY

    def test_it_is_what_there_is(self):
        """Without rights the recorder takes perf's events, and one line says what is missing and why."""
        done = self.record("true", options=("--kernel",))
        self.assertEqual(done.status, 0)
        self.assertRegex(done.stderr, r"(?m)^arctrace: warning: recording the kernel by perf "
                                      r"events, without wake-ups: [^\n]+$")
        self.assertEqual(self.before_summary(done).count("kernel"), 1)
        self.assertEqual(read_info(done.trace)["session"]["kernel_records"], "perf")
        done = self.record("true", options=("--kernel", "--page-faults"))
        self.assertIn("without wake-ups, --page-faults: ", done.stderr)
        done = self.record("true", options=("--kernel=require",))
        self.assertEqual(done.status, 0)
        self.assertIn("perf events, without wake-ups: ", done.stderr)
        for options in (["--kernel=bpf"], ["--kernel=require", "--syscalls"]):
            done = self.record("true", options=options)
            self.assertEqual(done.status, 2)
            self.assertRegex(done.stderr, rf"^arctrace: {options[0]}: [^\n]+\n$")


@unittest.skipUnless(SYSCALLS, "the numbers of system calls are not known")
class ForbiddenTest(PerfCase):
    @cases.in_gate
    def test_without_bpf_and_perf(self):
        """Neither is available: the recorder prints one line, and records all the same."""
        forbidden = forbid("bpf", "perf_event_open")
        done = self.record("true", options=("--kernel",), preexec_fn=forbidden)
        self.assertEqual(done.status, 0, done.stderr)
        self.assertRegex(done.stderr, r"(?m)^arctrace: warning: recording without the kernel: "
                                      r"[^\n]+; perf_event_open is refused: [^\n]+$")
        self.assertEqual(done.stderr.count("the kernel"), 1)  # the reason may name kernel.perf_...
        self.assertIsNone(read_info(done.trace)["session"]["kernel_records"])
        for use in ("perf", "require"):
            done = self.record("true", options=(f"--kernel={use}",), preexec_fn=forbidden)
            self.assertEqual(done.status, 2)
            self.assertRegex(done.stderr, rf"^arctrace: --kernel={use}: [^\n]+\n$")

    @unittest.skipIf(NO_PERF, NO_PERF or "")
    def test_without_bpf(self):
        done = self.record("true", options=("--kernel",), preexec_fn=forbid("bpf"))
        self.assertEqual(done.status, 0, done.stderr)
        self.assertIn("recording the kernel by perf events", done.stderr)
        text = json.dumps(read_dump(done.trace))
        self.assertIn("EXECED", text)


if __name__ == "__main__":
    cases.main()
