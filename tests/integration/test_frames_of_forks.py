"""A child of fork begins in the frames of its parent. They are shown in each view, export and library, with the
time of the fork, and are calls in none."""

import collections
import csv
import io
import json
import os
import sqlite3
import subprocess
import unittest

import cases
from command import read, read_info, read_report
from test_export import protoc
from test_reader import read_all
from tracing import TracedTest

PYTHON = os.environ.get("ARCTRACE_PYTHON")
MARK = " [inherited by fork]"
INHERITED = 16  # enum arctrace_reader_call_flag

DEPTH = 40
# Forks within so many calls of deep().
PROGRAM = """
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) void leaf(void) { __asm__ volatile(""); }
__attribute__((noinline)) void deep(int depth) {
  if (depth > 1) {
    deep(depth - 1);
    __asm__ volatile("");
    return;
  }
  const pid_t child = fork();
  leaf();
  if (child > 0) waitpid(child, NULL, 0);
  leaf();
}
int main(void) {
  deep(%d);
  leaf();
  return 0;
}
""" % DEPTH
CALLS = {"main": 1, "deep": DEPTH, "leaf": 6, "fork": 1, "waitpid": 1}
INHERITED_FRAMES = {"main": 1, "deep": DEPTH, "fork": 1}

PYTHON_PROGRAM = """
import collections, json, sys
import arctrace
trace = arctrace.open(sys.argv[1])
with trace.calls() as calls:
    found = [(c.name, c.is_call, c.start_ns) for c in calls]
(group,) = trace.profile()
print(json.dumps({"calls": found, "functions": {f.name: f.calls for f in group.functions}}))
"""


class FramesOfForksTest(TracedTest):
    def setUp(self):
        super().setUp()
        program = self.directory / "forks"
        subprocess.run(["gcc", "-O1", "-finstrument-functions", "-x", "c", "-o", program, "-"], input=PROGRAM,
                       text=True, check=True)
        done = self.record(program)
        self.assertEqual(done.status, 0, done.stderr)
        self.trace = done.trace
        self.fork_ns, = (p["start_ns"] for p in read_info(self.trace)["processes"] if p["origin"] == "fork")

    def exported(self, form, *options):
        path = self.directory / f"out.{form}"
        read("export", f"--to={form}", "--force", "-o", path, *options, self.trace)
        return path

    def check(self, frames):
        """frames: (name, whether it is a call, when it begins) of each that is shown."""
        self.assertEqual(collections.Counter(name for name, is_call, _ in frames if is_call), CALLS)
        self.assertEqual(collections.Counter(name for name, is_call, _ in frames if not is_call), INHERITED_FRAMES)
        self.assertEqual({start for _, is_call, start in frames if not is_call}, {self.fork_ns})

    def by_mark(self, frames):
        """check() for output that tells inherited frames by the name."""
        self.check([(name.removesuffix(MARK), not name.endswith(MARK), start) for name, start in frames])

    def test_reports(self):
        functions = {row["name"]: row for row in read_report(self.trace, "flat")["functions"]
                     if not row["name"].startswith("[")}
        self.assertEqual({name: row["calls"] for name, row in functions.items()}, CALLS)
        self.assertEqual({name: row["marks"]["inherited"] for name, row in functions.items() if "marks" in row},
                         INHERITED_FRAMES)
        flow = read_report(self.trace, "flow")["flow"]
        self.check([(row["name"], "inherited" not in row.get("flags", ()), row["time_ns"]) for row in flow
                    if row["type"] == "ENTER"])
        slowest = read_report(self.trace, "slowest", "-F", "deep", "-n", "1000")
        self.assertEqual((slowest["calls"], len(slowest["slowest"])), (DEPTH, DEPTH))
        rows = read_report(self.trace, "invocations")["invocations"]
        self.check([(row["name"], "inherited" not in row.get("flags", ()), row["start_ns"]) for row in rows
                    if not row["name"].startswith("[")])

    def test_rows(self):
        rows = list(csv.DictReader(io.StringIO(self.exported("csv").read_text())))
        objects = [json.loads(line) for line in self.exported("ndjson").read_text().splitlines()]
        for table in (rows, objects):
            shown = [row for row in table if row["type"] in ("call", "frame")]
            self.check([(row["name"], row["type"] == "call", int(row["start_ns"])) for row in shown])
        self.assertEqual({row["flags"] for row in rows if row["type"] == "frame"}, {"inherited by fork"})
        self.assertEqual({tuple(row["flags"]) for row in objects if row["type"] == "frame"}, {("inherited",)})

    def test_sqlite(self):
        base = sqlite3.connect(self.exported("sqlite"))
        self.addCleanup(base.close)
        for counts in ("SELECT name, count(*) FROM named_calls GROUP BY name",
                       "SELECT name, calls FROM function_sums",
                       "SELECT name, count(*) FROM calls JOIN functions f ON f.id = function_id GROUP BY name"):
            self.assertEqual(dict(base.execute(counts)), CALLS, counts)
        self.check(base.execute("SELECT name, is_call, start_ns FROM frames JOIN functions f ON f.id = function_id")
                   .fetchall())
        # The time of frames that are no calls counts for their function all the same.
        self.assertEqual(dict(base.execute("SELECT name, self_ns FROM function_sums")),
                         {row["name"]: row["base_ns"] for row in read_report(self.trace, "flat")["functions"]
                          if not row["name"].startswith("[")})

    def test_time_lines(self):
        file = json.loads(self.exported("speedscope").read_text())
        names = [frame["name"] for frame in file["shared"]["frames"]]
        self.by_mark([(names[event["frame"]], event["at"]) for profile in file["profiles"]
                      for event in profile["events"] if event["type"] == "O"])
        events = json.loads(self.exported("chrome").read_text())["traceEvents"]
        begins = [event for event in events if event["ph"] in "XB"]
        self.by_mark([(event["name"], round(event["ts"] * 1000)) for event in begins])
        for event in begins:
            self.assertEqual("inherited" in event.get("args", {}).get("flags", ()), event["name"].endswith(MARK))

    @unittest.skipIf(subprocess.run(["sh", "-c", "command -v protoc"], stdout=subprocess.DEVNULL).returncode,
                     "protoc is missing")
    def test_perfetto(self):
        sequences, begins = {}, []
        for packet in protoc("perfetto.proto", "Trace", self.exported("perfetto").read_bytes())["packet"]:
            number = packet["trusted_packet_sequence_id"][0]
            if "1" in packet["sequence_flags"]:
                clocks = {clock["clock_id"][0]: clock for clock in packet["clock_snapshot"][0]["clocks"]}
                sequences[number] = [int(clocks["64"]["timestamp"][0]), {}]
            if not packet["track_event"]:
                continue
            event = packet["track_event"][0]
            for data in packet["interned_data"]:
                for entry in data["event_names"]:
                    sequences[number][1][entry["iid"][0]] = entry["name"][0]
            sequences[number][0] += int(packet["timestamp"][0])
            if event["type"] == ["TYPE_SLICE_BEGIN"] and event["name_iid"]:
                begins.append((sequences[number][1][event["name_iid"][0]], sequences[number][0]))
        # The times in this view count from another time.
        main_ns, = (time for name, time in begins if name == "main")
        origin_ns = main_ns - next(row["time_ns"] for row in read_report(self.trace, "flow")["flow"]
                                   if row.get("name") == "main")
        self.by_mark([(name, time - origin_ns) for name, time in begins])

    def test_sums(self):
        counts = collections.Counter()
        for line in self.exported("folded", "--weight=count").read_text().splitlines():
            stack, number = line.rsplit(" ", 1)
            counts[stack.split(";")[-1]] += int(number)
        self.assertEqual({name: n for name, n in counts.items() if not name.startswith("[")}, CALLS)

    def test_libraries(self):
        lines = read_all("calls", self.trace)["call"]
        self.check([(name, not int(flags) & INHERITED, int(start))
                    for _, start, _, _, _, name, *_, flags in lines])
        sums = collections.Counter()
        for name, _, calls, *_ in read_all("sums", self.trace)["function"]:
            sums[name] += int(calls)
        self.assertEqual({name: n for name, n in sums.items() if not name.startswith("[")}, CALLS)
        if PYTHON is None:
            return
        done = subprocess.run([PYTHON, "-B", "-c", PYTHON_PROGRAM, self.trace], stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "PYTHONPATH": os.environ["ARCTRACE_PYTHON_PACKAGE"]}, check=True)
        found = json.loads(done.stdout)
        self.check(found["calls"])
        self.assertEqual({name: n for name, n in found["functions"].items() if not name.startswith("[")}, CALLS)


if __name__ == "__main__":
    cases.main()
