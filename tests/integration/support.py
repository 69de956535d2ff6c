"""What the integration tests share: the command, the real program, recording and reading."""

import json
import os
import pathlib
import re
import struct
import subprocess
import typing

from trace_checks import ARCTRACE, CheckedTraces, read_report

LUA = pathlib.Path(os.environ["ARCTRACE_LUA"])  # where tools/lua built; fixture lua
WORKLOAD = pathlib.Path(__file__).resolve().parent / "lua/workload.lua"


LIBRARY = pathlib.Path(ARCTRACE).resolve().parent.parent / "lib/libarctrace.so.0"

# What a Python program begins with that writes records by the C API.
API = f"""
import ctypes, os, sys, threading, time
api = ctypes.CDLL({str(LIBRARY)!r})
def name(text): return api.arctrace_define_name(text.encode())
def key(text): return ctypes.c_uint64(1 << 63 | name(text))
"""


# Of the line that says how own functions can be recorded.
HINT = "; to record a program's own functions, "


def lines_without_hint(errors):
    return [line for line in errors.splitlines() if HINT not in line]


def lines_without_leftovers(errors):
    """Without the line that names a buffer of a killed recorder, which another test may have left."""
    return [line for line in errors.splitlines() if "left behind by killed recorder" not in line]


def destroy_left_buffer(errors):
    """Destroys the buffer, if there is one, that a recorder left with records that it could not
    write, and which it says how to recover."""
    for buffer in re.findall(r"run arctrace recover (?:--merge=\S+ )?(\S+),", errors):
        subprocess.run([ARCTRACE, "destroy", buffer], check=True)


def duration_text(time_ns):
    """A duration as reports show it: three digits, rounded half up, and a dash for nothing."""
    if time_ns == 0:
        return "-"
    if time_ns < 1000:
        return f"{time_ns} ns"
    for name, unit in (("us", 10**3), ("ms", 10**6), ("s", 10**9)):
        for decimals in (2, 1, 0):
            digits = (time_ns * 10**decimals * 2 + unit) // (2 * unit)
            if digits < 1000 or (name, decimals) == ("s", 0):
                return f"{digits // 10**decimals:,}" + f".{digits % 10**decimals:0{decimals}d}" * (decimals > 0) \
                    + f" {name}"
    return ""


def bytes_text(size):
    """A number of bytes as arctrace shows it: rounded down to a tenth of its unit."""
    if size < 1024:
        return f"{size} bytes"
    unit = min((size.bit_length() - 1) // 10, 4)
    tenths = (size * 10 >> 10 * unit) % 10
    return f"{size >> 10 * unit}" + f".{tenths}" * (tenths > 0) + f" {' KMGT'[unit]}iB"


class Recorded(typing.NamedTuple):
    trace: pathlib.Path
    status: int
    stdout: str
    stderr: str


class TraceTest(CheckedTraces):
    def record(self, *command, options=(), cwd=None):
        """Runs command under `arctrace record` with these options."""
        trace = self.directory / "arctrace.data"
        done = subprocess.run(
            [ARCTRACE, "record", "-o", trace, *options, "--", *command],
            cwd=cwd or self.directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            check=False,
        )
        return Recorded(trace, done.returncode, done.stdout, done.stderr)

    def info(self, path):
        """What `arctrace info` prints, as JSON."""
        done = subprocess.run([ARCTRACE, "info", path, "--format=json"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def check_clean(self, path):
        """`arctrace check` finds nothing."""
        done = subprocess.run([ARCTRACE, "check", path], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    def assert_indexed(self, path):
        """The file's header leads to an INDEX (SPEC FILE-7); that it is right is for check."""
        content = path.read_bytes()
        (offset,) = struct.unpack_from("<Q", content, 160)
        self.assertGreater(offset, 4096, path)
        self.assertEqual(struct.unpack_from("<IH", content, offset), (0x4B4E4843, 4))

    def dump(self, path, *options):
        """The records as `arctrace dump` has them, one object each."""
        done = subprocess.run([ARCTRACE, "dump", path, "--format=json", *options],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def report(self, trace, view, *options):
        """The JSON of a view."""
        return read_report(trace, view, *options)
