"""Checks for every trace and its reports, whatever was recorded.

A test derived from TracedTest (tracing.py) has all this checked at its end, for each trace in its directory.
"""

import collections
import os
import struct
import subprocess

from command import SANITIZED, read, read_report, start_arctrace

FILE_MAGIC = b"ARCTFILE"
# Beyond this depth JSON is nested too deep for Python; calls further in are not shown. A gap at this depth stands one
# level further in.
DEPTH_MAX = 199
# A sanitized command takes a second for what it says of one trace, and the views do not depend on the kind of hook;
# then only one view is checked.
ALL_VIEWS = not SANITIZED and not os.environ.get("ARCTRACE_FIXTURE_KIND")
# How many records are read one by one; for longer traces only the order of records is checked.
RECORDS_MAX = 200_000


def assert_time_order(trace):
    """dump has the records of all processes in order of time. Its times are aligned, so that lines compare like
    numbers."""
    last = b""
    with start_arctrace("dump", "--no-header", "--fields=time", trace, stdout=subprocess.PIPE) as dump:
        for line in dump.stdout:
            if line < last or len(line) != len(last or line):
                raise AssertionError(f"{trace}: {line} stands after {last}")
            last = line
    if dump.returncode != 0:
        raise AssertionError(f"{trace}: dump ended with status {dump.returncode}")


class Sums:
    """Calls and times of a function, summed over all rows that have it."""

    def __init__(self):
        self.calls = self.self_ns = self.total_ns = 0

    def add(self, row):
        self.calls += row["calls"]
        self.self_ns += row["base_ns"]
        self.total_ns += row["cum_ns"]

    def of(self, rows):
        for row in rows:
            self.add(row)
        return self

    def values(self):
        return self.calls, self.self_ns, self.total_ns


def function_of(row):
    return row["name"], row.get("module")


def walk(root):
    """Each node with the functions around it."""
    nodes = [(root, frozenset())]
    while nodes:
        node, outer = nodes.pop()
        yield node, outer
        inner = outer if node is root else outer | {function_of(node)}
        nodes += [(child, inner) for child in node["children"]]


class ReportChecks:
    """Compares the views of one trace with each other."""

    def __init__(self, test, trace):
        self.test = test
        self.trace = trace
        # The views must be cut at one depth to show the same.
        self.cut = f"--depth={DEPTH_MAX}"
        self.tree = read_report(trace, "tree", self.cut)

    def equal(self, found, expected, what):
        self.test.assertEqual(found, expected, f"{self.trace}: {what}")

    def check(self):
        self.check_trees()
        if ALL_VIEWS:
            self.arcs, self.flat = (read_report(self.trace, view, self.cut) for view in ("arcs", "flat"))
            self.check_arcs()
            self.check_sums_agree()
        if self.tree["summary"]["records"] <= RECORDS_MAX:
            self.check_times()
        elif not SANITIZED:  # a sanitized dump of millions takes minutes; the order is the same
            assert_time_order(self.trace)

    def check_trees(self):
        """total is self and the children's total; all self times are the thread's time."""
        for thread in self.tree["threads"]:
            self_ns = 0
            for node, _ in walk(thread["root"]):
                self.equal(node["cum_ns"],
                           node["base_ns"] + sum(child["cum_ns"] for child in node["children"]),
                           f"total of {node['name']}")
                self_ns += node["base_ns"]
            self.equal(self_ns, thread["root"]["cum_ns"], f"self of thread {thread['tid']}")
            self.test.assertLessEqual(self_ns, self.tree["summary"]["duration_ns"],
                                      f"{self.trace}: thread {thread['tid']} is longer than the trace")

    def check_arcs(self):
        """A function is the sum of its parents; its children are the time that it did not spend itself."""
        for own in self.arcs["arcs"]:
            self.equal(Sums().of(own["parents"]).values(), Sums().of([own]).values(),
                       f"parents of {own['name']}")
            self.equal(sum(child["cum_ns"] for child in own["children"]),
                       own["cum_ns"] - own["base_ns"], f"children of {own['name']}")

    def check_sums_agree(self):
        """The trees add up to the functions, each with its time in recursion once."""
        of_trees = collections.defaultdict(Sums)
        for thread in self.tree["threads"]:
            for node, outer in walk(thread["root"]):
                if node is thread["root"]:
                    continue
                function = function_of(node)
                of_trees[function].add(
                    {**node, "cum_ns": 0 if function in outer else node["cum_ns"]})
        expected = {function: sums.values() for function, sums in of_trees.items()}
        for rows in (self.flat["functions"], self.arcs["arcs"]):
            found = collections.defaultdict(Sums)
            for row in rows:
                found[function_of(row)].add(row)
            self.equal({function: sums.values() for function, sums in found.items()}, expected,
                       "functions")

    def check_times(self):
        """dump is in order of time, and a thread's time is at least that from its first to its last call or exit, and
        at most that of the recording."""
        spans = {}  # by writer: pid and tid, first and last of all, first and last of frames
        end_ns = 0
        lines = read("dump", "--no-header", "--fields=time,writer,pid,tid,type", self.trace)
        for line in lines.splitlines():
            time, writer, pid, tid, kind = line.split()
            last_ns, end_ns = end_ns, int(time.replace(".", ""))
            self.test.assertLessEqual(last_ns, end_ns, f"{self.trace}: {line} is out of order")
            if not pid.isdigit():
                continue
            time_ns = end_ns
            thread, everything, frames = spans.setdefault(writer, ((int(pid), int(tid)), [], []))
            for times in (everything, frames) if kind in ("ENTER", "EXIT") else (everything,):
                times[1:] = [time_ns] if times else []
                if not times:
                    times.append(time_ns)
        # A thread that executes a program is another thread from then on, with the same number.
        bounds = collections.defaultdict(lambda: [0, 0])
        for thread, everything, frames in spans.values():
            for bound, times in enumerate((frames, everything)):
                if times:
                    bounds[thread][bound] += end_ns if bound else times[-1] - times[0]
        found = collections.Counter()
        for row in self.tree["threads"]:
            if row["pid"]:  # else another file has the definition of the thread
                # What the tracer did in the thread is in no sum.
                own_ns = sum(node.get("overhead_ns", 0) for node, _ in walk(row["root"]) if node["name"] == "[arctrace]")
                found[row["pid"], row["tid"]] += row["root"]["cum_ns"] + own_ns
        for thread, total_ns in found.items():
            least, most = bounds[thread]
            self.test.assertLessEqual(least, total_ns, f"{self.trace}: time of thread {thread}")
            self.test.assertLessEqual(total_ns, most, f"{self.trace}: time of thread {thread}")


def traces_below(directory):
    """The trace files in a directory and those in it."""
    for path in sorted(directory.rglob("*")):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if file.read(len(FILE_MAGIC)) == FILE_MAGIC:
                    yield path


def check_trace(test, trace, with_views=True):
    """`arctrace check` finds nothing, and the views, if they are checked, agree with each other."""
    read("check", trace)
    if with_views:
        ReportChecks(test, trace).check()


def assert_indexed(test, trace):
    """The file's header leads to an INDEX (SPEC FILE-7); `arctrace check` verifies its content."""
    content = trace.read_bytes()
    (offset,) = struct.unpack_from("<Q", content, 160)
    test.assertGreater(offset, 4096, trace)
    test.assertEqual(struct.unpack_from("<IH", content, offset), (0x4B4E4843, 4))
