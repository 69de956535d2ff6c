"""Measures what recording a call costs by arctrace, by uftrace, and by a bare ring, for each kind of hook.

The programs know of no tracer. All kinds of hooks and all recorders take turns, so that a slow phase
of the machine disturbs them alike.
"""

import collections
import os
import pathlib
import re
import shutil
import statistics
import tempfile

from harness import LAST_CPU, Figures, run_program

KINDS = {"-finstrument-functions": "hooked_call_bench_instrument",
         "-pg": "hooked_call_bench_pg",
         "-pg -mfentry": "hooked_call_bench_fentry",
         "-fpatchable-function-entry=5": "hooked_call_bench_patchable",
         "a library call through the PLT": "library_call_bench"}
RING_KIND = "-finstrument-functions"  # the only one that the bare ring has hooks for
NO_HOOK = "hooked_call_bench_none"
ROUNDS = 3  # the memory of each process lies differently
OFF_GOAL_NS = 1  # more than a call without a hook
SWITCHED_OFF_GOAL_KINDS = {"-pg -mfentry", "-fpatchable-function-entry=5"}
UFTRACE_GOAL = 1 / 3  # for two functions in turn
CLOCK_GOALS = {"coarse": 0.55, "order": 0.45}  # of the bare ring, which reads a clock, for two functions in turn
RING_GOALS = collections.defaultdict(lambda: (1.10, 1.15), {"-pg": (1.5, 1.5)})  # repeated, in turn


class Ways:
    """Ways in which a program's calls may be recorded from outside: the words before its command."""

    def __init__(self, bench):
        self.bench = bench
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="arctrace-bench-", dir="/dev/shm"))
        self.session = f"bench-{os.getpid()}"

    def __enter__(self):
        run_program([self.bench.program("arctrace"), "create", self.session, "-b", "16M"])
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.directory, ignore_errors=True)
        run_program([self.bench.program("arctrace"), "destroy", self.session])

    def of_kind(self, kind):
        ways = {"not recorded": [],
                "switched off": self.bench.record(f"--session={self.session}"),
                "arctrace": self.bench.record("-o", "/dev/null", "-b", "16M")}
        if kind == RING_KIND:
            ring = self.bench.programs.parent / "lib/libbare_ring.so"
            ways["bare ring"] = ["env", f"LD_PRELOAD={ring}"]
            for clock in CLOCK_GOALS:
                ways[f"arctrace --clock={clock}"] = self.bench.record("-o", "/dev/null", "-b", "16M", f"--clock={clock}")
        if shutil.which("uftrace") is not None:
            patched = ["-P", "."] if "patchable" in kind else []
            ways["uftrace"] = ["uftrace", "record", "--force", "--no-pager", "--no-event", *patched,
                               "-d", self.directory / "data"]
        return ways

    def run_once(self, program, prefix):
        """[(repeated, in turn, outermost, floor)] in ns of a call, of each repetition."""
        command = ["taskset", "-c", str(LAST_CPU), self.bench.program(program),
                   str(max(5, self.bench.repetitions // ROUNDS))]
        done = run_program([*prefix, *command])
        lost = re.search(r", ([1-9][\d,]*) lost", done.stderr)
        if lost:
            print(f"  note: {lost[1]} records of {program} lost: cheaper than kept ones")
        shutil.rmtree(self.directory / "data", ignore_errors=True)
        return [tuple(map(float, line.split())) for line in done.stdout.splitlines()
                if re.fullmatch(r"[\d.]+( [\d.]+){3}", line)]


Costs = collections.namedtuple("Costs", "repeated in_turn outermost floor")


def measure(ways):
    """{(kind, way): Costs, each of them Figures}"""
    runs = collections.defaultdict(list)
    for _ in range(ROUNDS):
        runs["none", "not recorded"] += ways.run_once(NO_HOOK, [])
        for kind, program in KINDS.items():
            for way, prefix in ways.of_kind(kind).items():
                runs[kind, way] += ways.run_once(program, prefix)
    return {what: Costs(*(Figures(min(column), statistics.median(column)) for column in zip(*all_of)))
            for what, all_of in runs.items()}


def row(report, what, costs):
    cells = "".join(f"{one.least:8.2f}{one.median:8.2f}" for one in costs[:3])
    report.row(what, cells)


def ratios(report, what, ours, others, goals):
    """A row of the ratios of `ours` to `others`, repeated and in turn; a goal may be None."""
    pairs = [(ours.repeated, others.repeated), (ours.in_turn, others.in_turn)]
    least = [one.least / other.least for one, other in pairs]
    median = [one.median / other.median for one, other in pairs]
    cells = "".join(f"{a:8.2f}{b:8.2f}" for a, b in zip(least, median))
    met = all(goal is None or ratio <= goal for ratio, goal in zip(least, goals))
    report.row(what, f"{cells}{'':16}", ", ".join(f"{goal:.2f}" for goal in goals if goal), met)


def calls(bench, report):
    """Entry and exit of a call, by the kind of hook and by what records it."""
    with Ways(bench) as ways:
        costs = measure(ways)
    no_hook = costs["none", "not recorded"]
    ring = costs[RING_KIND, "bare ring"]
    columns = "".join(f"{head:>8}" for head in ("repeated", "median", "in turn", "median",
                                                "outer", "median", "goal <="))
    report.section("A call of a function without a hook (ns)", columns)
    row(report, "not recorded", no_hook)
    row(report, "two clock reads", (no_hook.floor,))
    for kind in KINDS:
        report.section(f"Entry and exit by {kind} (ns)", columns)
        for way in ways.of_kind(kind):
            row(report, way, costs[kind, way])
        ours = costs[kind, "arctrace"]
        ratios(report, "arctrace, of the bare ring's", ours, ring, RING_GOALS[kind])
        for clock, goal in CLOCK_GOALS.items() if kind == RING_KIND else ():
            way = f"arctrace --clock={clock}"
            ratios(report, f"{way}, of the ring's", costs[kind, way], ring, (None, goal))
        if (kind, "uftrace") in costs:
            ratios(report, "arctrace, of uftrace's", ours, costs[kind, "uftrace"],
                   (None, UFTRACE_GOAL))
        else:
            report.cannot("arctrace, of uftrace's", "uftrace is not installed")
        if kind in SWITCHED_OFF_GOAL_KINDS:
            more = [off.least - bare.least
                    for off, bare in zip(costs[kind, "switched off"][:2], no_hook[:2])]
            report.row("switched off, more than no hook", f"{more[0]:8.2f}{'':8}{more[1]:8.2f}{'':24}",
                       f"{OFF_GOAL_NS}", max(more) <= OFF_GOAL_NS)
