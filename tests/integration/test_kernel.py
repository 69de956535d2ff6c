"""The kernel writes into the same buffer: time on and off the CPU, and who may not have it."""
import json
import os
import pathlib
import re
import signal
import subprocess
import unittest

import support

SOURCES = pathlib.Path(__file__).parent / "kernel"


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


class ProgramTest(support.TraceTest):
    """Tests that record a program of SOURCES."""

    PROGRAM = None  # its name there

    def setUp(self):
        super().setUp()
        self.program = self.folder / self.PROGRAM
        subprocess.run(["gcc", "-O1", "-finstrument-functions", "-pthread",
                        SOURCES / f"{self.PROGRAM}.c", "-o", self.program], check=True)

    def record_program(self, *options, arguments=()):
        """(trace, what the program measured, what arctrace said)."""
        done = self.record(self.program, *arguments,
                           options=("--kernel=require", "--no-libcall", *options))
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
        # Some more when it ended, behind its own count.
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


@unittest.skipIf(NO_KERNEL, NO_KERNEL or "")
class KernelFramesTest(ProgramTest):
    """What the kernel does is in frames of the thread for which it does it."""

    PROGRAM = "states"

    def children(self, trace, name):
        """What the function calls, and how often."""
        arcs = {arc["name"]: arc for arc in self.report(trace, "arcs")["arcs"]}
        return {child["name"]: child["calls"] for child in arcs[name]["children"]}

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
        # A few more of the hooks that come before the entry.
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
    unittest.main()
