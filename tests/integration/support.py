"""What the integration tests share: the command, the real program, recording and reading."""

import os
import pathlib
import subprocess
import typing

from trace_checks import ARCTRACE, CheckedTraces, read_report

LUA = pathlib.Path(os.environ["ARCTRACE_LUA"])  # where tools/lua built; fixture lua
WORKLOAD = pathlib.Path(__file__).resolve().parent / "lua/workload.lua"


class Recorded(typing.NamedTuple):
    trace: pathlib.Path
    status: int
    stdout: str
    stderr: str


class TraceTest(CheckedTraces):
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
        return read_report(trace, view, *options)
