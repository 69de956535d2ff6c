"""Shared code of the tests of the shim: fixtures whose functions have hooks and count their own calls."""

import collections
import dataclasses
import functools
import json
import os
import re
import struct

import cases
from command import NO_FUNCTION, read
from tracing import Recorded, TracedTest

SHIM = os.environ["ARCTRACE_SHIM"]
KIND = os.environ["ARCTRACE_FIXTURE_KIND"]  # the kind of hook
# The compilers that have the kind of hook; in the gate only one of them.
COMPILERS = cases.shortened(os.environ["ARCTRACE_COMPILERS"].split(","))
TOOLS = {name: os.environ[f"ARCTRACE_{name.upper()}"] for name in ("gcc", "clang")}
ANY_COMPILER = COMPILERS[0]


def options_of_kind(options):
    """The options that record needs beside `options` to record the functions of the fixtures."""
    if not KIND.startswith("patched"):
        return ()
    return ("-P", ".") if {"-Z", "--size-filter"}.intersection(options) else ("-P", ".", "-Z", "1")


def plain_name(name):
    """A function's name without scope, arguments and what a compiler adds to copies of it; names of
    templates and lambdas stay as they are."""
    plain = re.fullmatch(r"(?:[\w~]+::)*(~?\w+)(?:\.\w+)*(?:\([^()]*\))?",
                         name.replace("(anonymous namespace)::", ""))
    return plain[1] if plain else name


def functions_of(program):
    """{plain name of a function: whether it can be patched}, for names that only one function has."""
    verdicts = {}
    for function in json.loads(read("functions", "--list", "--format=json", program))["list"]:
        can = function["verdict"] == "patchable"
        name = plain_name(function["name"].split(" [clone")[0])
        verdicts[name] = can and verdicts.get(name, True)
    return verdicts


@dataclasses.dataclass(frozen=True)
class CountedRun(Recorded):
    """A traced run of a fixture."""

    @functools.cached_property
    def counted(self):
        """{function: calls} by the fixture's own count (fixtures/calls.h)."""
        entry = struct.Struct("=QQ48s")
        file = self.directory / "calls.bin"
        table = file.read_bytes() if file.exists() else b""
        return {name.split(b"\0")[0].decode(): count
                for hash_of_name, count, name in entry.iter_unpack(table) if hash_of_name}

    def plain_calls(self):
        """How often each function was called by the trace, by its plain name."""
        calls = collections.Counter()
        for name, count in self.calls().items():
            calls[plain_name(name)] += count
        return calls

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
                    inner = path + (name,) if name in self.counted else path
                    if inner != path:
                        paths["/".join(inner)] += child["calls"]
                    open_nodes.append((child, inner))
        return dict(paths)


class ShimTest(TracedTest):
    """A test whose methods take a compiler: both are tried."""

    RECORDED = CountedRun
    MAY_SAY = (NO_FUNCTION,)  # the fixtures are not built for this

    def record_quietly(self, *command, options=(), **how):
        """Records the functions of fixtures, and library calls only if the options say so."""
        options = (*options_of_kind(options), *options)
        if not {"--libcall", "--nest-libcall"}.intersection(options):
            options = ("--no-libcall", *options)
        return super().record_quietly(*command, options=options, **how)

    def assert_counts(self, traced, but_for=()):
        """Every call that the fixture counted is in the trace, and no other."""
        recorded = traced.plain_calls()
        for name, count in traced.counted.items():
            if name not in but_for:
                self.assertEqual(recorded[name], count, name)


def both_compilers(test):
    """Runs a test method (self, compiler) for gcc and for clang, if both have the kind of hook."""

    def run_with_each(self):
        for compiler in COMPILERS:
            with self.subTest(compiler=compiler):
                test(self, compiler)

    run_with_each.__name__ = test.__name__
    run_with_each.__doc__ = test.__doc__
    return run_with_each
