"""What the integration tests share: the command, the real program, recording and reading."""

import json
import os
import pathlib
import subprocess
import tempfile
import typing
import unittest

ARCTRACE = os.environ["ARCTRACE"]  # the command
LUA = pathlib.Path(os.environ["ARCTRACE_LUA"])  # where tools/lua built; fixture lua
WORKLOAD = pathlib.Path(__file__).resolve().parent / "lua/workload.lua"


class Recorded(typing.NamedTuple):
    trace: pathlib.Path
    status: int
    stdout: str
    stderr: str


class TraceTest(unittest.TestCase):
    """A test with a folder of its own, self.folder, that is gone afterwards."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def record(self, *command, options=(), cwd=None):
        """Runs command under `arctrace record` with these options."""
        trace = self.folder / "arctrace.data"
        done = subprocess.run(
            [ARCTRACE, "record", "-o", trace, *options, "--", *command],
            cwd=cwd or self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            check=False,
        )
        return Recorded(trace, done.returncode, done.stdout, done.stderr)

    def report(self, trace, view, *options):
        """The JSON of a view."""
        done = subprocess.run(
            [ARCTRACE, "report", trace, f"--view={view}", "--format=json", *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)
