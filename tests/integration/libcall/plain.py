"""What the tests of library calls share: a program run untraced and traced, and compared."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import cases

ARCTRACE = os.environ["ARCTRACE"]
FIXTURES = pathlib.Path(os.environ["ARCTRACE_FIXTURES"])
COMPILERS = cases.shortened(("gcc", "clang"))
MODES = ("--libcall", "--nest-libcall")
# Of the line that says how own functions can be recorded.
HINT = b"; to record a program's own functions, "


def run(command, directory, **options):
    return subprocess.run(command, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, timeout=600, **options)


class PlainTest(unittest.TestCase):
    maxDiff = None

    def directory(self, compiler=None):
        """A new directory; with all of a compiler's fixtures in it."""
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        directory = pathlib.Path(made.name)
        if compiler is not None:
            for fixture in (FIXTURES / compiler).iterdir():
                (directory / fixture.name).symlink_to(fixture)
        return directory

    def read(self, trace, *arguments):
        done = subprocess.run([ARCTRACE, arguments[0], trace, *arguments[1:]], check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def functions(self, trace):
        """The rows of the view flat, without the parts of a process' life."""
        rows = json.loads(self.read(trace, "report", "--view=flat", "--format=json"))["functions"]
        return [row for row in rows if not row["name"].startswith("[")]

    def calls(self, trace):
        """{function: calls} over all threads."""
        calls = {}
        for function in self.functions(trace):
            calls[function["name"]] = calls.get(function["name"], 0) + function["calls"]
        return calls

    def record(self, command, directory, options=(), confines=False, **run_options):
        """Runs `command` traced; returns it without the recorder's own line, and the trace,
        which must be valid. `confines`: it executes programs under seccomp filters, which
        the recorder reports."""
        trace = directory / "arctrace.data"
        done = run([ARCTRACE, "record", "-o", trace, *options, "--", *command], directory,
                   **run_options)
        lines = done.stderr.splitlines(True)
        own = [line for line in lines if line.startswith(b"arctrace: ")]
        confined = b": it is confined by a seccomp filter\n"
        late = b"there was no time to search all of it"  # for names, on a busy machine
        others = [line for line in own if HINT not in line and late not in line
                  and (not confines or not line.endswith(confined))]
        self.assertEqual(len(others), 1, done.stderr)
        done.stderr = b"".join(line for line in lines if line not in own)
        self.read(trace, "check")
        return done, trace

    def compare(self, command, compiler=None, options=(), **run_options):
        """It must do the same untraced and traced, in each mode; returns the last trace."""
        bare = run(command, self.directory(compiler), **run_options)
        trace = None
        for mode in MODES:
            with self.subTest(command=command, compiler=compiler, mode=mode):
                done, trace = self.record(command, self.directory(compiler), (mode, *options),
                                          **run_options)
                self.assertEqual(done.returncode, bare.returncode)
                self.assertEqual(done.stdout, bare.stdout)
                self.assertEqual(done.stderr, bare.stderr)
        return bare, trace
