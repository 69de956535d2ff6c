"""Recording a program in a test: one class for what was recorded, and one base class of all tests that record.

A test derives from TracedTest, and records with `record()`, or with `compare()`, which requires that the program
does the same untraced and traced. Whatever it leaves in its directory is checked at its end (trace_checks.py).
"""

import collections
import dataclasses
import os
import pathlib
import tempfile
import unittest

from command import (arctrace, lines_without, own_lines, program_lines, read, read_dump, read_info, read_report,
                     run)
from trace_checks import check_trace, traces_below

# The programs that were built for a test, in a directory for each compiler.
FIXTURES = pathlib.Path(os.environ.get("ARCTRACE_FIXTURES", ""))


@dataclasses.dataclass(frozen=True)
class Recorded:
    """A program that has run under `arctrace record`."""

    directory: pathlib.Path  # where it ran
    trace: pathlib.Path
    status: int  # as subprocess has it
    stdout: str
    stderr: str  # the program's and the recorder's

    @property
    def own_lines(self):
        """The recorder's own lines."""
        return own_lines(self.stderr)

    @property
    def errors(self):
        """What the program alone wrote to standard error."""
        return program_lines(self.stderr)

    def read(self, command, *arguments):
        return read(command, self.trace, *arguments)

    def report(self, view, *options):
        return read_report(self.trace, view, *options)

    def records(self, *options):
        return read_dump(self.trace, *options)

    def info(self, *options):
        return read_info(self.trace, *options)

    def functions(self, *options):
        """The rows of the view flat, without phases of a process, such as [constructors]."""
        return [row for row in self.report("flat", *options)["functions"] if not row["name"].startswith("[")]

    def calls(self, *options):
        """How often each function was called, by its name, over all threads and modules."""
        calls = collections.Counter()
        for row in self.functions(*options):
            calls[row["name"]] += row["calls"]
        return calls


# What a flight recorder says of its buffer.
HELD = "the records of all threads are there"


class TracedTest(unittest.TestCase):
    """A test with a directory of its own, self.directory, that is gone afterwards."""

    maxDiff = None
    RECORDED = Recorded
    # Whether the views of each trace are compared with each other at the end of a test, and not only `check` is
    # run.
    CHECKS_VIEWS = True
    # Parts of the lines that compare() lets the recorder print beside its summary; and whether records may be lost,
    # where the test does not say so.
    MAY_SAY = ()
    MAY_LOSE = False

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.addCleanup(self.check_traces)

    def check_traces(self):
        for trace in traces_below(self.directory):
            check_trace(self, trace, self.CHECKS_VIEWS)

    def place(self, name, compiler=None):
        """A new directory; with all fixtures of the compiler in it, if one is given."""
        directory = self.directory / f"{name}-{len(list(self.directory.iterdir()))}"
        directory.mkdir()
        if compiler is not None:
            for fixture in (FIXTURES / compiler).iterdir():
                (directory / fixture.name).symlink_to(fixture)
        return directory

    def record(self, *command, options=(), directory=None, trace="arctrace.data", **run_options):
        """Runs a command under `arctrace record` with these options, in self.directory or another one, in which
        the trace is made. `run_options` are those of command.run()."""
        directory = directory or self.directory
        trace = directory / trace
        done = arctrace("record", "-o", trace, *options, "--", *command,
                        **{"cwd": directory, "errors": "surrogateescape", **run_options})
        return self.RECORDED(directory, trace, done.returncode, done.stdout, done.stderr)

    def record_quietly(self, *command, compiler=None, options=(), directory=None, may_say=(), may_lose=False,
                       **run_options):
        """record() in a directory of its own, if none is given; the recorder prints nothing beside its summary."""
        directory = directory or self.place("traced", compiler)
        traced = self.record(*command, options=options, directory=directory, **run_options)
        said = lines_without("".join(traced.own_lines), HELD, *self.MAY_SAY, *may_say)
        self.assertEqual(len(said), 1, traced.stderr)
        if not (may_lose or self.MAY_LOSE):
            self.assertIn(" 0 lost, ", traced.own_lines[-1])
        return traced

    def assert_same(self, bare, traced):
        """A program did the same untraced, which run() returned, and traced."""
        self.assertEqual(traced.status, bare.returncode, traced.stderr)
        self.assertEqual(traced.stdout, bare.stdout)
        self.assertEqual(traced.errors, bare.stderr)

    def compare(self, *command, compiler=None, options=(), may_say=(), may_lose=False, **run_options):
        """Runs a command untraced, then traced, each in a place of its own: it must do the same. Returns the traced
        run."""
        bare = run(*command, cwd=self.place("untraced", compiler), **run_options)
        traced = self.record_quietly(*command, compiler=compiler, options=options, may_say=may_say,
                                     may_lose=may_lose, **run_options)
        self.assert_same(bare, traced)
        return traced
