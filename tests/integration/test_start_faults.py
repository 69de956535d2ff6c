"""How many page faults a recording adds to the start of a small program (`bench/run execs` measures the same)."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

import cases
from command import arctrace
from tracing import TracedTest

EXECUTIONS = 10
# Executes its arguments so many times, and prints the least page faults that an execution took.
EXECUTE = f"""
import json, os, resource, sys
counts = [0]
for _ in range({EXECUTIONS}):
    _, status = os.waitpid(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ), 0)
    assert status == 0, status
    counts.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt)
print(json.dumps(min(after - before for before, after in zip(counts, counts[1:]))))
"""
# Measured: 31 (x86-64, glibc 2.36); it was 106 when large tables lay between other variables.
ADDED_MAX = 45


class StartFaults(TracedTest):
    def test_recorded_start(self):
        """A recorded start touches few pages more than one with an empty library in LD_PRELOAD."""
        empty = self.directory / "empty.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", empty], input="int empty;", text=True,
                       check=True)
        execute = [sys.executable, "-c", EXECUTE, "/bin/true"]
        plain = json.loads(subprocess.run(execute, env={**os.environ, "LD_PRELOAD": str(empty)}, check=True,
                                          stdout=subprocess.PIPE, text=True).stdout)
        recorded = json.loads(arctrace("record", "-o", self.directory / "arctrace.data", "--", *execute).stdout)
        self.assertGreater(recorded, plain, "the program was not recorded")
        self.assertLessEqual(recorded - plain, ADDED_MAX, f"{plain} with an empty library, {recorded} recorded")


if __name__ == "__main__":
    cases.main()
