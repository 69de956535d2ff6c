"""The main job: Lua, instrumented, runs the workload with its coroutines, errors and children.
The report's counts are compared with gcov's, which knows nothing of arctrace; its times with a
stopwatch around the run.
"""

import collections
import json
import os
import pathlib
import shutil
import sys
import unittest

import cases
from command import SANITIZED, read_report, run
from support import LUA, WORKLOAD
from tracing import TracedTest

SIZE = "1"
# The sanitized command reads the same kind of trace from both; the programs that write it are not sanitized.
COMPILED = ("instrumented",) if SANITIZED else ("instrumented", "clang")
# Space for all records of size 1: nothing may be lost where counts are compared.
ROOM = ("--buffer-size=256M",)
# Runs a command with a stopwatch around it: prints its process, and the nanoseconds and those of CPU that it took.
STOPWATCH = """
import resource, subprocess, sys, time
start = time.monotonic_ns()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
process.wait()
elapsed_ns = time.monotonic_ns() - start
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(process.pid, elapsed_ns, round((used.ru_utime + used.ru_stime) * 1e9))
"""


def untraced(kind, size=SIZE, **environment):
    """What the workload prints without arctrace; it is run in the same way as when traced."""
    return run("./lua", WORKLOAD, size, cwd=LUA / kind, env={**os.environ, **environment}, check=True).stdout


def gcov_counts(directory):
    """{function: calls} of the workload and its children, by gcov. directory: for its files."""
    untraced("gcov", GCOV_PREFIX=str(directory))
    data = pathlib.Path(f"{directory}{LUA.resolve()}/gcov")
    for notes in (LUA / "gcov").glob("*.gcno"):
        shutil.copy(notes, data)
    counts = collections.Counter()
    for file in sorted(data.glob("*.gcda")):
        output = run("gcov", "--json-format", "--stdout", file.name, cwd=data, check=True).stdout
        for line in output.splitlines():
            for source in json.loads(line)["files"]:
                for function in source["functions"]:
                    counts[function["name"]] += function["execution_count"]
    return {name: count for name, count in counts.items() if count > 0}


class Lua(TracedTest):
    def test_a_flight_recorder(self):
        recorded = self.record(LUA / "instrumented/lua", "-e",
                               "local s = 0 for i = 1, 20000 do s = s + #tostring(i) end print(s)",
                               options=("--mode=overwrite", "--no-libcall", "-b", "1M"))
        self.assertEqual(recorded.stdout, "88894\n")
        self.assertIn(" overwritten, ", recorded.stderr)
        report = recorded.report("flat")
        self.assertGreater(report["summary"]["overwritten"], report["summary"]["records"])
        self.assertEqual(report["summary"]["orphans"], 0)
        self.assertIn("main", {row["name"] for row in report["functions"]})

    def test_exit_status_is_the_programs(self):
        plain = run("./lua", WORKLOAD, SIZE, "status", cwd=LUA / "plain")
        self.assertNotEqual(plain.returncode, 0)
        traced = self.record("./lua", WORKLOAD, SIZE, "status", cwd=LUA / "instrumented")
        self.assertEqual(traced.status, plain.returncode)

    def test_output_counts_and_frames(self):
        wanted = gcov_counts(self.directory / "gcov")
        self.assertGreater(sum(wanted.values()), 1000000)
        expected = untraced("plain")
        for kind in COMPILED:
            with self.subTest(kind=kind):
                done = self.record("./lua", WORKLOAD, SIZE, options=ROOM, cwd=LUA / kind)
                self.assertEqual(done.status, 0, done.stderr)
                self.assertEqual(done.stdout, expected)
                flat = read_report(done.trace, "flat")
                counts = collections.Counter()
                for row in flat["functions"]:
                    counts[row["name"]] += row["calls"]
                # clang also instruments libc's inline functions; gcov counts Lua's own only.
                own = {name: count for name, count in counts.items() if name in wanted}
                self.assertEqual(own, wanted)
                self.check_frames(flat["summary"])

    def check_frames(self, summary):
        """Errors and coroutines abandon frames by longjmp, one child by exit: no exit is missed."""
        for none in ("lost", "torn", "unfinished", "invalid", "orphans", "findings", "resyncs"):
            self.assertEqual(summary[none], 0, none)
        for none in ("entered_before", "entry_lost", "exit_lost"):
            self.assertEqual(summary["frames"][none], 0, none)
        self.assertGreater(summary["frames"]["unwound"], 1000)
        self.assertGreater(summary["frames"]["open"], 10)  # frames of the child that called os.exit

    @unittest.skipIf(SANITIZED, "of the writer only, and takes minutes")
    def test_times_agree_with_a_stopwatch(self):
        done = self.record(sys.executable, "-c", STOPWATCH, "./lua", WORKLOAD, "2", options=ROOM,
                           cwd=LUA / "instrumented")
        pid, elapsed_ns, cpu_ns = map(int, done.stdout.split())
        rows = read_report(done.trace, "flat", f"--pid={pid}")["functions"]
        main_ns = [row["cum_ns"] for row in rows if row["name"] == "main"]
        self.assertEqual(len(main_ns), 1)
        self.assertLessEqual(main_ns[0], elapsed_ns)
        # The workload waits for its children. The rest is exec and the dynamic loader, which a busy machine may keep
        # waiting for long: only their CPU time counts.
        self.assertGreater(main_ns[0], 0.8 * cpu_ns)


if __name__ == "__main__":
    cases.main()
