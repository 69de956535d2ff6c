"""What a recording adds to the start of a small program: CPU time and page faults of 1,000 executions of /bin/true.

Rounds of all ways take turns. The executions' own CPU time is measured, which excludes the recorder's and that of the
program that executes.
"""

import collections
import json
import pathlib
import shutil
import statistics
import sys
import tempfile

from harness import CannotRun, run_program

ROUNDS = 10
EXECUTIONS = 100  # of a round
# Executes its arguments so many times, one after another, and prints what its children took.
EXECUTE = f"""
import json, os, resource, sys
for _ in range({EXECUTIONS}):
    _, status = os.waitpid(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ), 0)
    assert status == 0, status
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({{"ms": (used.ru_utime + used.ru_stime) * 1000 / {EXECUTIONS}, "faults": used.ru_minflt / {EXECUTIONS}}}))
"""
COLUMNS = f"{'ms min':>8}{'median':>8}{'+ ms':>8}{'faults':>8}{'+':>7}  {'goal':>10}"
GOAL_MS, GOAL_FAULTS = 1.0, 40


def empty_library(directory):
    source = directory / "empty.c"
    source.write_text("int empty_library;\n", encoding="ascii")
    run_program(["gcc", "-shared", "-fPIC", source, "-o", directory / "empty.so"])
    return directory / "empty.so"


def execs(bench, report):
    """CPU time and page faults of a program's start, beside an empty library in LD_PRELOAD and other tracers."""
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        execute = [sys.executable, "-c", EXECUTE, "/bin/true"]
        record = [bench.program("arctrace"), "record", "-o", directory / "trace"]
        ways = {"untraced": execute,
                "an empty library in LD_PRELOAD": ["env", f"LD_PRELOAD={empty_library(directory)}", *execute],
                "arctrace record --no-libcall": [*record, "--no-libcall", "--", *execute],
                "arctrace record": [*record, "--", *execute]}
        if shutil.which("uftrace"):
            ways["uftrace record --force"] = ["uftrace", "record", "--force", "--no-event", "--no-pager", "-d",
                                              directory / "uftrace", *execute]
        if shutil.which("ltrace"):
            ways["ltrace -f -c"] = ["ltrace", "-f", "-c", "-o", directory / "ltrace", *execute]
        found, failed = collections.defaultdict(list), {}
        for _ in range(ROUNDS):
            for way, command in ways.items():
                if way in failed:
                    continue
                try:
                    found[way].append(json.loads(run_program(command, cwd=directory).stdout.splitlines()[0]))
                except (CannotRun, ValueError, IndexError) as why:
                    failed[way] = why
        report.section(f"{ROUNDS * EXECUTIONS:,} executions of /bin/true", COLUMNS)
        plain = {key: min(one[key] for one in found["untraced"]) for key in ("ms", "faults")}
        for way in ways:
            if way in failed:
                report.cannot(way, failed[way])
                continue
            least = {key: min(one[key] for one in found[way]) for key in ("ms", "faults")}
            added = {key: least[key] - plain[key] for key in least}
            cells = (f"{least['ms']:8.2f}{statistics.median(one['ms'] for one in found[way]):8.2f}{added['ms']:8.2f}"
                     f"{least['faults']:8.0f}{added['faults']:7.0f}")
            if way == "arctrace record":
                report.row(way, cells, f"<= {GOAL_MS:g}, {GOAL_FAULTS}",
                           added["ms"] <= GOAL_MS and added["faults"] <= GOAL_FAULTS)
            else:
                report.row(way, cells)
