"""What the suites of others share: programs that are run untraced and traced, and compared.

A suite is a class derived from Suite, in a file of its own. Its prepare() fetches and builds
what it needs below a directory that is kept; its programs() are commands that do the same
whenever they are run, as far as that is known.
"""

import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import tempfile
import typing

ROOT = pathlib.Path(__file__).parent.parent.parent
MODES = {"default": (), "nested": ("--nest-libcall",), "overwrite": ("--mode=overwrite",),
         "shared": ("--scope=shared",)}
# Flags of gcc for each kind of compiled-in hook.
HOOKS = {"plain": (), "cyg": ("-finstrument-functions",), "pg": ("-pg",),
         "fentry": ("-pg", "-mfentry"), "patchable": ("-fpatchable-function-entry=5",)}
ENVIRONMENT = {**os.environ, "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}


class Unavailable(Exception):
    """What a suite needs cannot be had here."""


class Program(typing.NamedTuple):
    name: str
    command: list
    directory: pathlib.Path
    environment: dict = {}
    varies: bytes = b"(?!)"  # what differs from run to run


class Suite:
    """`place`: a directory of its own, which is kept. `part`: which part of its programs is
    wanted, up to 1; `random` chooses them."""

    name = ""
    seconds = 120  # for one program, untraced
    has_no_orphans = False  # in its traces no exit lacks its entry

    def __init__(self, place, part, random):
        self.place = place
        self.part = part
        self.random = random

    def prepare(self):
        """Raises Unavailable."""

    def programs(self):
        raise NotImplementedError

    def some(self, items):
        """A random part of `items`, but at least one."""
        items = sorted(items)
        count = max(1, round(len(items) * self.part))
        return sorted(self.random.sample(items, min(count, len(items))))

    def fetch(self, package, binary=False):
        """The directory of a Debian package's source, or of its files."""
        directory = self.place.parent / "debian" / package
        kind = ["--binary"] if binary else []
        done = subprocess.run([ROOT / "tools/debian-package", *kind, package, directory],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Unavailable(done.stderr.strip().splitlines()[-1])
        return directory

    def build(self, command, directory, **environment):
        done = subprocess.run(command, cwd=directory, env={**ENVIRONMENT, **environment},
                              stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if done.returncode != 0:
            raise Unavailable(f"{command[0]} fails in {directory}: "
                              f"{done.stderr[-2000:].decode(errors='replace')}")


class Done(typing.NamedTuple):
    """What a run did; a run that took too long has no status."""

    status: int
    stdout: bytes
    stderr: bytes


def run(program, command, seconds):
    try:
        done = subprocess.run(command, cwd=program.directory, stdin=subprocess.DEVNULL,
                              env={**ENVIRONMENT, **program.environment}, capture_output=True,
                              timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return Done(None, b"", b"")
    lines = [line for line in done.stderr.splitlines(True) if not line.startswith(b"arctrace: ")]
    varies = re.compile(program.varies)
    return Done(done.returncode, varies.sub(b"", done.stdout), varies.sub(b"", b"".join(lines)))


def findings(arctrace, trace):
    """What `check` finds in the trace; empty: nothing."""
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


def compare(arctrace, suite, program, modes):
    """[(outcome, mode, text)] of one program."""
    bare = run(program, program.command, suite.seconds)
    if bare.status is None:
        return [("takes too long", "", "")]
    outcomes = []
    for mode in modes:
        with tempfile.TemporaryDirectory(prefix="arctrace-suite-") as directory:
            trace = pathlib.Path(directory) / "arctrace.data"
            traced = run(program, [arctrace, "record", *MODES[mode], "-o", trace, "--",
                                   *program.command], suite.seconds * 5)
            if traced != bare:
                again = [run(program, program.command, suite.seconds) for _ in range(2)]
                if any(done != bare for done in again):
                    outcomes.append(("never the same", mode, ""))
                else:
                    outcomes.append(("different", mode, difference(bare, traced)))
                continue
            if not trace.exists():
                outcomes.append(("no trace", mode, ""))
                continue
            found = findings(arctrace, trace)
            if suite.has_no_orphans and not found:
                found = orphans(arctrace, trace)
            info = json.loads(subprocess.run([arctrace, "info", "--format=json", trace],
                                             capture_output=True, check=True).stdout)
            lost = info["summary"]["lost"]
            outcome = "findings" if found else "same, with losses" if lost else "same"
            outcomes.append((outcome, mode, found))
    return outcomes


FAILED = ("different", "findings", "no trace")


def run_suite(arctrace, suite, modes, jobs, say):
    """Counts of outcomes by mode: {mode: Counter}. `say(text)` gets what is wrong."""
    counts = collections.defaultdict(collections.Counter)
    programs = list(suite.programs())
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        results = pool.map(lambda program: compare(arctrace, suite, program, modes), programs)
        for program, outcomes in zip(programs, results):
            for outcome, mode, text in outcomes:
                counts[mode][outcome] += 1
                if outcome in FAILED:
                    say(f"{suite.name}: {program.name}, {mode}: {outcome}\n{text}")
    return counts
