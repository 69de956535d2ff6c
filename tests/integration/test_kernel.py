"""The kernel writes into the same buffer: time on and off the CPU, and who may not have it."""
import json
import os
import pathlib
import re
import signal
import subprocess
import unittest

import support

SOURCE = pathlib.Path(__file__).parent / "kernel" / "waits.c"


def obstacle():
    """Why the kernel can't write here, by arctrace's own probe; None if it can."""
    tried = subprocess.run(
        [support.ARCTRACE, "record", "-o", "/dev/null", "--kernel=require", "--", "true"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    for reason in ("no BTF", "are refused", "is refused", "PID namespace"):
        if tried.returncode == 2 and reason in tried.stderr:
            return tried.stderr.strip()
    return None


NO_KERNEL = obstacle()


class WithoutKernelTest(support.TraceTest):
    def test_unprivileged_user_is_told_and_served(self):
        """A user without rights: one line, and a recording all the same."""
        if os.geteuid() != 0:
            self.skipTest("needs root, to be somebody else")
        self.folder.chmod(0o777)
        trace = self.folder / "arctrace.data"
        command = [support.ARCTRACE, "record", "-o", trace, "--kernel", "--", "true"]
        unprivileged = {"user": 65534, "group": 65534, "extra_groups": []}
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False,
                              **unprivileged)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("recording without the kernel: "), 1, done.stderr)
        command[command.index("--kernel")] = "--kernel=require"
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False,
                              **unprivileged)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"^arctrace: --kernel=require: [^\n]+\n$")

    def test_bad_option(self):
        done = subprocess.run([support.ARCTRACE, "record", "--kernel=maybe", "--", "true"],
                              stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn('"maybe" is not auto, require or no', done.stderr)


@unittest.skipIf(NO_KERNEL, NO_KERNEL or "")
class KernelTest(support.TraceTest):
    def setUp(self):
        super().setUp()
        self.program = self.folder / "waits"
        subprocess.run(["gcc", "-O1", "-finstrument-functions", SOURCE, "-o", self.program],
                       check=True)

    def record_program(self, *options):
        """(trace, what the program measured, what arctrace said)."""
        done = self.record(
            self.program, options=("--kernel=require", "--no-libcall", *options))
        self.assertEqual(done.status, 0, done.stderr)
        measured = {name: int(value) for name, value in
                    (line.split() for line in done.stdout.splitlines())}
        return done.trace, measured, done.stderr

    def functions(self, trace):
        return {f["name"]: f for f in self.report(trace, "flat")["functions"]}

    def test_time_on_and_off_the_cpu(self):
        trace, measured, said = self.record_program()
        self.assertIn(" 0 lost", said)
        functions = self.functions(trace)
        sleeper, computer = functions["sleeper"], functions["computer"]
        for function in functions.values():
            self.assertEqual(function["cpu_ns"] + function["off_cpu_ns"], function["cum_ns"])
            self.assertLessEqual(function["ready_ns"], function["off_cpu_ns"])
        self.assertGreater(sleeper["off_cpu_ns"], 0.9 * measured["slept_ns"])
        self.assertLessEqual(sleeper["off_cpu_ns"], measured["slept_ns"])
        self.assertGreaterEqual(sleeper["switches"], 10)
        self.assertAlmostEqual(computer["cpu_ns"] / measured["computed_ns"], 1, delta=0.1)

    def test_every_switch_is_there(self):
        trace, measured, _ = self.record_program()
        records = self.dump(trace, "--type", "SWITCH")
        left = sum(record["tid"] == measured["tid"] for record in records)
        # Some more when it ended, behind its own count.
        self.assertGreater(measured["switches"], 2000)
        self.assertGreaterEqual(left, measured["switches"])
        self.assertLessEqual(left, measured["switches"] + 50)
        times = [record["time_ns"] for record in records]
        self.assertEqual(times, sorted(times))

    def test_the_threads_are_the_programs_own(self):
        """The kernel's records name many threads that run no traced program."""
        trace, _, _ = self.record_program()
        info = self.info(trace)
        self.assertEqual(len(info["threads"]), 2)
        self.assertEqual(info["summary"]["threads"], 2)

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

    def test_killed_recorder_harms_nobody(self):
        trace = self.folder / "arctrace.data"
        before = set(os.listdir("/run/arctrace"))
        recorder = subprocess.Popen(
            [support.ARCTRACE, "record", "-o", trace, "--kernel=require", "--", self.program],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(recorder.stdout.close)
        self.addCleanup(recorder.stderr.close)
        first = recorder.stdout.readline().decode()
        recorder.kill()
        recorder.wait()
        output = first + recorder.stdout.read().decode()  # until the program has ended
        self.assertRegex(output, r"switches \d+\n$")
        left = set(os.listdir("/run/arctrace")) - before
        self.assertEqual(len(left), 1)
        os.unlink(f"/run/arctrace/{left.pop()}")
        partial = [name for name in os.listdir(self.folder) if re.search(r"\.data", name)]
        for name in partial:
            info = subprocess.run([support.ARCTRACE, "info", "--format=json",
                                   self.folder / name], stdout=subprocess.PIPE, check=True)
            self.assertFalse(json.loads(info.stdout)["session"]["finished"])
            os.unlink(self.folder / name)


if __name__ == "__main__":
    unittest.main()
