"""Handlers run on signal stacks with space for what docs/guide/limits.md says that a recorded call takes, and no
more: with each kind of hook, in main and in threads, nested, recorded from the beginning and joined."""

import pathlib
import re
import signal
import subprocess

import cases
from command import NO_FUNCTION, read, read_report, start_arctrace
from tracing import FIXTURES, TracedTest

LIMITS = pathlib.Path(__file__).parents[2] / "docs/guide/limits.md"
PROGRAMS = sorted(file for file in FIXTURES.glob("*/*"))
LITTLE = ["begins", "main, first: little", "main, later: little", "main, later: little",
          "thread, nested, first: little", "thread, nested, later: little",
          "thread, nested, later: little"]


def stated_bytes():
    """The bytes of a signal stack that a recorded call takes by the documentation."""
    return int(re.search(r"On a signal stack \(`sigaltstack`\) it takes up to\s(\d+) bytes",
                         LIMITS.read_text(encoding="utf-8"))[1])


class SignalStacks(TracedTest):
    MAY_SAY = (NO_FUNCTION, "arctrace: only library calls were recorded")

    @staticmethod
    def functions_of(program, *options):
        """The options with which the functions are recorded."""
        return ("-P", ".", *options) if program.name == "plain" else ("-F", "leaf")

    def assert_little(self, output, status):
        lines = output.splitlines()
        self.assertEqual(lines[:-1], LITTLE)
        self.assertEqual(status, 7)

    def test_from_the_beginning(self):
        for program in PROGRAMS:
            for options in ((), ("-a",), self.functions_of(program, "-Z", "1"), ("--no-libcall",)):
                with self.subTest(program=program.name, options=options):
                    traced = self.compare(program, stated_bytes(), options=options)
                    self.assert_little(traced.stdout, traced.status)

    def test_joined(self):
        """A thread's first recorded call is in a handler, on a stack that was announced long before."""
        for program in PROGRAMS:
            for options in ((), ("-a",), self.functions_of(program)):
                with self.subTest(program=program.name, options=options):
                    self.join(program, *options)

    def join(self, program, *options):
        with subprocess.Popen([program, str(stated_bytes()), "waits"], cwd=self.directory, text=True,
                              stdout=subprocess.PIPE) as joined:
            self.addCleanup(joined.kill)
            begins = joined.stdout.readline()
            trace = self.directory / "joined.data"
            with start_arctrace("record", "-o", trace, "-p", str(joined.pid), *options, text=True,
                                stderr=subprocess.PIPE) as recorder:
                self.addCleanup(recorder.kill)
                said = ""
                for line in recorder.stderr:
                    said += line
                    if "joined process" in line:
                        break
                self.assertIn("joined process", said)
                joined.send_signal(signal.SIGUSR1)
                output = begins + joined.stdout.read()
                joined.wait()
                said += recorder.stderr.read()
            self.assertEqual(recorder.returncode, 0, said)
            self.assert_little(output, joined.returncode)
            read("check", trace)
            called = {row["name"] for row in read_report(trace, "flat")["functions"]}
            # Without -P only library calls of a plain program are recorded; with -P its small functions are not.
            self.assertIn("leaf" if program.name != "plain" else "handle" if "-P" in options else "getppid", called)


if __name__ == "__main__":
    cases.main()
