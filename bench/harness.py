"""Shared code of all benchmarks: running and repeating programs, figures, and the printed table."""

import collections
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
LAST_CPU = max(os.sched_getaffinity(0))


class CannotRun(Exception):
    """A measurement that can't be made, with the reason."""


Figures = collections.namedtuple("Figures", "least median")


class Report:
    """The table, printed row by row, and what could not be measured."""

    def __init__(self):
        self.failures = []

    @staticmethod
    def section(title, columns):
        idle = idle_share()
        busy = "" if idle > 0.9 else f"   (the machine is busy: {idle:.0%} idle)"
        print(f"\n{title}{busy}\n{'':44}{columns}", flush=True)

    @staticmethod
    def row(what, cells, goal="", met=None):
        verdict = "" if met is None else "met" if met else "NOT MET"
        print(f"  {what:42}{cells}  {goal:>10}  {verdict}".rstrip(), flush=True)

    def cannot(self, what, why):
        self.failures.append(what)
        print(f"  {what:42}could not run: {why}", flush=True)


def idle_share():
    """The share of all CPUs' time that was idle in the last half second."""
    def times():
        with open("/proc/stat", encoding="ascii") as file:
            fields = [int(field) for field in file.readline().split()[1:9]]
        return fields[3] + fields[4], sum(fields)
    idle, total = times()
    time.sleep(0.5)
    idle_later, total_later = times()
    return (idle_later - idle) / max(1, total_later - total)


def run_program(command, **options):
    """Runs a command to its end; CannotRun with its last words if it fails."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, errors="replace", check=False,
                          **options)
    if done.returncode != 0:
        words = (done.stderr + done.stdout).strip().splitlines() or ["no message"]
        raise CannotRun(f"status {done.returncode}: {words[-1]}")
    return done


class Bench:
    """The programs, and how often each measurement is repeated."""

    def __init__(self, programs, repetitions, before=None):
        self.programs = programs
        self.before = before  # another build's programs, to compare with
        self.repetitions = repetitions

    def program(self, name):
        return self.programs / name

    def record(self, *options):
        """The start of a command that records what follows. Its collector, busy while we measure, stays
        away from the CPU that the benchmarks choose."""
        return ["taskset", "-c", "0", self.program("arctrace"), "record", *options, "--"]

    def measure(self, command, value, processes=1):
        """Runs a Google Benchmark program, the repetitions spread over some processes, because
        their memory lies differently; {name: Figures of value(run)}. Runs that the program marks
        as errors, or whose value is None, are missing from them."""
        values, dropped = collections.defaultdict(list), 0
        for _ in range(processes):
            for one in self.run_benchmarks(command, -(-self.repetitions // processes)):
                number = None if one.get("error_occurred") else value(one)
                if number is None:
                    dropped += 1
                else:
                    values[one["run_name"].split("/iterations:")[0]].append(number)
        if dropped > 0:
            print(f"  note: {dropped} repetitions do not count: others used the CPUs, or records were lost")
        return {name: Figures(min(all_of), statistics.median(all_of))
                for name, all_of in values.items()}

    @staticmethod
    def run_benchmarks(command, repetitions):
        """All single runs of a Google Benchmark program, as its JSON output has them."""
        with tempfile.NamedTemporaryFile(suffix=".json") as out:
            run_program([*command, f"--benchmark_repetitions={repetitions}",
                         "--benchmark_enable_random_interleaving=true",
                         f"--benchmark_out={out.name}", "--benchmark_out_format=json"])
            return [one for one in json.load(out)["benchmarks"]
                    if one["run_type"] == "iteration"]


COST_COLUMNS = f"{'ns min':>8}{'median':>8}{'x floor':>9}{'median':>8}  {'goal':>10}"


def cost_rows(report, figures, rows, goals):
    for what, name, floor in rows:
        if name not in figures:
            report.cannot(what, "no figures")
            continue
        one = figures[name]
        cells = f"{one.least:8.2f}{one.median:8.2f}"
        goal, met = "", None
        if floor is not None and floor in figures:
            ratio = one.least / figures[floor].least
            cells += f"{ratio:9.2f}{one.median / figures[floor].median:8.2f}"
            if name in goals:
                goal, met = f"<= {goals[name]} x", ratio <= goals[name]
        report.row(what, cells, goal, met)
