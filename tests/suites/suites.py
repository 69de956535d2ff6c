"""Shared code of the suites of others: programs to be run untraced and traced (comparison.py).

A suite is a class derived from Suite, in a file of its own. Its prepare() fetches and builds
what it needs below a directory that stays; its programs() are commands that do the same
whenever they are run, as far as that is known.
"""

import os
import pathlib
import subprocess
import typing

ROOT = pathlib.Path(__file__).parent.parent.parent
# Flags of gcc for each kind of compiled-in hook.
HOOKS = {"plain": (), "cyg": ("-finstrument-functions",), "pg": ("-pg",),
         "fentry": ("-pg", "-mfentry"), "patchable": ("-fpatchable-function-entry=5",)}
ENVIRONMENT = {**os.environ, "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}


class Unavailable(Exception):
    """Something that a suite needs is not available here."""


class Program(typing.NamedTuple):
    name: str
    command: list
    directory: pathlib.Path
    environment: dict = {}
    varies: bytes = b"(?!)"  # parts of the output that differ from run to run


class Suite:
    """`place`: a directory of its own, which stays. `part`: the part of its programs that is
    wanted, up to 1; `random` chooses them."""

    name = ""
    seconds = 120  # for one program, untraced, on a machine that does nothing else
    has_no_orphans = False  # whether each exit in its traces has its entry

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

    def build_file(self, target, compiler, directory):
        """Has `compiler` make `target`, unless it exists. The file gets its name when it is
        whole, so that a later run takes nothing of an interrupted one for built."""
        if target.exists():
            return
        part = target.with_name(f"{target.name}.part")
        self.build([*compiler, "-o", part], directory)
        part.rename(target)
