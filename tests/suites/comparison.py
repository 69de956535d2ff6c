"""Runs a program untraced and traced, in turn, and says whether it does the same.

The machine may do other work meanwhile. So the time limit of a traced run comes from how long the
same program has just taken untraced, and one run that differs proves nothing: the program is run
again, untraced and traced in turn, until it is known whether it differs untraced, too.
"""

import collections
import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import typing

import suites

MODES = {"default": (), "nested": ("--nest-libcall",), "overwrite": ("--mode=overwrite",),
         "shared": ("--scope=shared",)}

# How many times longer than on an idle machine a program may take untraced.
UNTRACED_LIMIT = 5
# How many times longer than untraced it may take traced, beyond what it may take untraced.
TRACED_LIMIT = 20
TURNS = 4  # more runs, of both kinds, of a program that differed

FAILED = ("different", "sometimes different", "hangs", "findings", "no trace")
NAMED = ("unstable", "takes too long")  # no fault, but these programs are listed


class Done(typing.NamedTuple):
    """The result of a run; a run that took too long has no status."""

    status: int
    stdout: bytes
    stderr: bytes


class Outcome(typing.NamedTuple):
    what: str
    mode: str = ""
    text: str = ""  # the message about it


def end(child):
    """Ends the process and its group. A recorder that gets SIGTERM destroys its buffer."""
    os.killpg(child.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(timeout=20)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def run(program, command, seconds):
    """Runs a command; if it takes too long, ends it with all that it has started and that is still
    in its group."""
    with subprocess.Popen(command, cwd=program.directory, stdin=subprocess.DEVNULL,
                          env={**suites.ENVIRONMENT, **program.environment}, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, start_new_session=True) as child:
        try:
            stdout, stderr = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            end(child)
            return Done(None, b"", b"")
    lines = [line for line in stderr.splitlines(True) if not line.startswith(b"arctrace: ")]
    varies = re.compile(program.varies)
    return Done(child.returncode, varies.sub(b"", stdout), varies.sub(b"", b"".join(lines)))


def findings(arctrace, trace):
    """The findings of `check` in the trace; empty: none."""
    done = subprocess.run([arctrace, "check", trace], capture_output=True, text=True, check=False)
    if done.returncode == 0 and "findings:" not in done.stdout:
        return ""
    return f"check: status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-1000:]}"


def orphans(arctrace, trace):
    """How many exits in the trace lack their entries; empty: none."""
    done = subprocess.run([arctrace, "report", "--view=flat", "--format=json", trace],
                          capture_output=True, check=True)
    count = json.loads(done.stdout)["summary"]["orphans"]
    return f"{count} orphans\n" if count else ""


def difference(expected, found):
    """The first lines that differ."""
    text = f"status {expected.status}, traced {found.status}\n"
    for name in ("stdout", "stderr"):
        lines = [getattr(done, name).splitlines() for done in (expected, found)]
        if lines[0] == lines[1]:
            continue
        at = next((i for i, pair in enumerate(zip(*lines)) if pair[0] != pair[1]),
                  min(map(len, lines)))
        text += "".join(f"{name} {kind} from line {at + 1}: "
                        f"{b' | '.join(some[at:at + 4])[:600].decode(errors='replace')}\n"
                        for kind, some in zip(("untraced", "traced"), lines))
    return text


class Untraced:
    """The runs of a program without arctrace, made as they are needed."""

    def __init__(self, suite, program):
        self.suite = suite
        self.program = program
        self.seen = []  # each different result once
        self.longest = 0  # seconds of a run
        self.again()

    def again(self):
        started = time.monotonic()
        done = run(self.program, self.program.command, UNTRACED_LIMIT * self.suite.seconds)
        self.longest = max(self.longest, time.monotonic() - started)
        if done not in self.seen:
            self.seen.append(done)

    def takes_too_long(self):
        return any(done.status is None for done in self.seen)

    def is_unstable(self):
        """Whether the program differed from itself twice."""
        return len(self.seen) > 2

    def ends_like(self, traced):
        return any(done.status == traced.status for done in self.seen)


def difference_in_turns(untraced, run_traced):
    """Runs the program untraced and traced in turn, until it is known whether these are the same.
    Returns (what, text), where `what` is empty if they are."""
    traced = [run_traced()]
    for _ in range(TURNS):
        if traced[0] in untraced.seen or untraced.is_unstable() or untraced.takes_too_long():
            break
        untraced.again()
        traced.append(run_traced())
    others = [done for done in traced if done not in untraced.seen]
    if not others:
        return "", ""
    if untraced.takes_too_long():
        return "takes too long", ""
    if untraced.is_unstable() and all(untraced.ends_like(done) for done in others):
        return "unstable", ""
    what = ("hangs" if all(done.status is None for done in others) else
            "different" if len(others) == len(traced) else "sometimes different")
    return what, (f"{len(others)} of {len(traced)} runs differ\n"
                  f"{difference(untraced.seen[0], others[-1])}")


def compare(arctrace, suite, program, modes):
    """[Outcome] of one program, by mode."""
    untraced = Untraced(suite, program)
    outcomes = []
    for mode in modes:
        with tempfile.TemporaryDirectory(prefix="arctrace-suite-") as directory:
            trace = pathlib.Path(directory) / "arctrace.data"
            command = [arctrace, "record", *MODES[mode], "-o", trace, "--", *program.command]
            if untraced.takes_too_long():
                outcomes.append(Outcome("takes too long", mode))
                break
            what, text = difference_in_turns(untraced, lambda: run(
                program, command, suite.seconds + TRACED_LIMIT * untraced.longest))
            if not what or what == "unstable":
                found, text = trace_outcome(arctrace, suite, trace)
                what = found if not what or found in FAILED else what
            outcomes.append(Outcome(what, mode, text))
    return outcomes


def trace_outcome(arctrace, suite, trace):
    """(what, text) about the trace of a run."""
    if not trace.exists():
        return "no trace", ""
    found = findings(arctrace, trace)
    if suite.has_no_orphans and not found:
        found = orphans(arctrace, trace)
    if found:
        return "findings", found
    info = json.loads(subprocess.run([arctrace, "info", "--format=json", trace],
                                     capture_output=True, check=True).stdout)
    return "same, with losses" if info["summary"]["lost"] else "same", ""


def compare_all(arctrace, suite, modes, jobs, say, deadline=None):
    """Counts of outcomes by mode: {mode: Counter}. `say(text)` gets the faults, and the programs
    that prove nothing. After `deadline`, by time.monotonic(), no program is begun: those that
    are built by then count as not run."""
    def is_late():
        return deadline is not None and time.monotonic() > deadline

    def one(program):
        if is_late():
            return [Outcome("not run", mode) for mode in modes]
        return compare(arctrace, suite, program, modes)

    counts = collections.defaultdict(collections.Counter)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        runs = []
        for program in suite.programs():  # while the first ones run, the others are being built
            runs.append((program, pool.submit(one, program)))
            if is_late():
                break
        for program, outcomes in runs:
            for outcome in outcomes.result():
                counts[outcome.mode][outcome.what] += 1
                if outcome.what in FAILED + NAMED:
                    say(f"{suite.name}: {program.name}, {outcome.mode}: {outcome.what}\n"
                        f"{outcome.text}".rstrip("\n"))
    return counts
