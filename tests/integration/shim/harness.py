"""What the tests of the shim share: a fixture run untraced and traced, compared, and read."""

import collections
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import typing
import unittest

import cases
from trace_checks import ARCTRACE, CheckedTraces, read

SHIM = os.environ["ARCTRACE_SHIM"]
FIXTURES = pathlib.Path(os.environ["ARCTRACE_FIXTURES"])
KIND = os.environ["ARCTRACE_FIXTURE_KIND"]  # of hook
# Those that have the kind of hook; in the gate only one of them.
COMPILERS = cases.shortened(os.environ["ARCTRACE_COMPILERS"].split(","))
TOOLS = {name: os.environ[f"ARCTRACE_{name.upper()}"] for name in ("gcc", "clang")}
ANY_COMPILER = COMPILERS[0]
NO_FUNCTION = "arctrace: no function was recorded"


def options_of_kind(options):
    """What record needs beside `options` to record the functions of the fixtures."""
    if not KIND.startswith("patched"):
        return ()
    return ("-P", ".") if {"-Z", "--size-filter"}.intersection(options) else ("-P", ".", "-Z", "1")


def plain_name(name):
    """A function's name without scope, arguments and what a compiler adds to copies of it; what
    is no plain function (templates, lambdas) as it is."""
    plain = re.fullmatch(r"(?:[\w~]+::)*(~?\w+)(?:\.\w+)*(?:\([^()]*\))?",
                         name.replace("(anonymous namespace)::", ""))
    return plain[1] if plain else name


def functions_of(program):
    """{plain name of a function: whether it can be patched}, where the name is of one only."""
    done = subprocess.run([ARCTRACE, "functions", "--list", "--format=json", program],
                          stdout=subprocess.PIPE, text=True, check=True)
    verdicts = {}
    for function in json.loads(done.stdout)["list"]:
        can = function["verdict"] == "patchable"
        name = plain_name(function["name"].split(" [clone")[0])
        verdicts[name] = can and verdicts.get(name, True)
    return verdicts


def counted_calls(directory):
    """{function: calls} by the fixture's own count (fixtures/calls.h)."""
    entry = struct.Struct("=QQ48s")
    table = (directory / "calls.bin").read_bytes()
    calls = {}
    for hash_of_name, count, name in entry.iter_unpack(table):
        if hash_of_name:
            calls[name.split(b"\0")[0].decode()] = count
    return calls


class Recorded(typing.NamedTuple):
    """A traced run."""

    directory: pathlib.Path
    trace: pathlib.Path
    status: int
    stdout: str
    calls: dict

    def read(self, *arguments):
        return read(arguments[0], self.trace, *arguments[1:])

    def records(self, *options):
        """The records as dump prints them."""
        return [json.loads(line) for line in
                self.read("dump", "--format=json", *options).splitlines()]

    def report(self, view, *options):
        return json.loads(self.read("report", f"--view={view}", "--format=json", *options))

    def info(self):
        return json.loads(self.read("info", "--format=json"))

    def paths(self, *options):
        """{path of functions from the outermost: calls} over all threads, of those functions
        that count their own calls."""
        paths = collections.Counter()
        for thread in self.report("tree", *options)["threads"]:
            open_nodes = [(thread["root"], ())]
            while open_nodes:
                node, path = open_nodes.pop()
                for child in node["children"]:
                    name = plain_name(child["name"])
                    inner = path + (name,) if name in self.calls else path
                    if inner != path:
                        paths["/".join(inner)] += child["calls"]
                    open_nodes.append((child, inner))
        return dict(paths)


class ShimTest(CheckedTraces):
    """A test whose methods take a compiler: both are tried."""

    maxDiff = None

    def place(self, name, compiler):
        """A directory with all fixtures of a compiler in it."""
        directory = self.directory / f"{name}-{len(list(self.directory.iterdir()))}"
        directory.mkdir()
        for fixture in (FIXTURES / compiler).iterdir():
            (directory / fixture.name).symlink_to(fixture)
        return directory

    def start(self, command, directory, **options):
        return subprocess.run(
            command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            check=False, timeout=600, **options,
        )

    def record(self, compiler, command, options=(), may_lose=False, **run_options):
        """Runs `command` traced, in a directory with all fixtures."""
        directory = self.place("traced", compiler)
        trace = directory / "arctrace.data"
        options = (*options_of_kind(options), *options)
        if not {"--libcall", "--nest-libcall"}.intersection(options):
            options = ("--no-libcall", *options)
        done = self.start([ARCTRACE, "record", "-o", trace, *options, "--", *command], directory,
                          **run_options)
        own = [line for line in done.stderr.splitlines(True) if line.startswith("arctrace: ")]
        hints = [line for line in own if NO_FUNCTION in line]  # nothing was built for it
        self.assertEqual(len(own) - len(hints), 1, done.stderr)
        if not may_lose:
            self.assertRegex(own[-1], r" 0 lost, ")
        rest = "".join(line for line in done.stderr.splitlines(True) if line not in own)
        calls = counted_calls(directory) if (directory / "calls.bin").exists() else {}
        return Recorded(directory, trace, done.returncode, done.stdout, calls), rest

    def compare(self, compiler, *command, options=(), may_lose=False, **run_options):
        """Runs `command` untraced, then traced: it must do the same. Returns the traced run."""
        bare = self.start(command, self.place("untraced", compiler), **run_options)
        traced, stderr = self.record(compiler, command, options, may_lose, **run_options)
        self.assertEqual(traced.status, bare.returncode)
        self.assertEqual(traced.stdout, bare.stdout)
        self.assertEqual(stderr, bare.stderr)
        return traced

    def assert_counts(self, traced, but_for=()):
        """Every call that the fixture counted is in the trace, and no other."""
        recorded = collections.Counter()
        for function in traced.report("flat")["functions"]:
            recorded[plain_name(function["name"])] += function["calls"]
        for name, count in traced.calls.items():
            if name not in but_for:
                self.assertEqual(recorded[name], count, name)


def both_compilers(test):
    """Runs a test method (self, compiler) for gcc and for clang, if both have the kind of hook."""

    def run(self):
        for compiler in COMPILERS:
            with self.subTest(compiler=compiler):
                test(self, compiler)

    run.__name__ = test.__name__
    run.__doc__ = test.__doc__
    return run


def signal_status(number):
    """How subprocess reports a death by signal."""
    return -int(number)


__all__ = ["ANY_COMPILER", "ARCTRACE", "COMPILERS", "FIXTURES", "KIND", "SHIM", "TOOLS", "Recorded", "ShimTest",
           "both_compilers", "functions_of", "options_of_kind", "plain_name", "signal", "signal_status", "unittest"]
