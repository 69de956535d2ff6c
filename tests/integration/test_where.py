"""--where selects events by the values of their fields, in dump, the view flow and exports, and as they are recorded;
each of them counts what it leaves out."""

import collections
import csv
import io
import json
import os
import sqlite3
import sys

import cases
import support
from command import ARCTRACE, arctrace, read, read_report, refused
from tracing import TracedTest

TYPED_EVENTS = os.environ["ARCTRACE_TYPED_EVENTS"]  # events/typed_events.cpp
EACH = 10  # so many events of each name
NAMES = ("db.query", "db.row", "ui.frame")
ALL = len(NAMES) * EACH

# Conditions, and the numbers of the events that meet all of them: of db.query (id u64, seconds f64, text,
# cached), db.row (id i64, at) and ui.frame (share f32, id a text: "5", then "frame").
CONDITIONS = (
    (["id > 9223372036854775807"], [9], [], range(1, 10)),
    (["id = 18446744073709551615"], [9], [], []),
    (["id == 0xffffffffffffffff"], [9], [], []),
    (["id = 1.8446744073709552e19"], [], [], []),
    (["id <= -9223372036854775808"], [], [9], []),
    (["id < 2.5"], [0, 1, 2], range(10), []),
    (["id = 5"], [5], [], [0]),
    (['id = "5"'], [], [], [0]),
    (["id != 5"], [0, 1, 2, 3, 4, 6, 7, 8, 9], range(10), range(1, 10)),
    (["seconds <= 0.5"], [0, 1, 2], [], []),
    (["seconds != 0.5"], [0, 1, 3, 4, 5, 6, 7, 8, 9], [], []),
    (["seconds = nan"], [9], [], []),
    (["share = 0.1"], [], [], [1]),
    (["share > 0.1"], [], [], range(2, 10)),
    (["text ~ select [3-5]"], [3, 4, 5], [], []),
    (["text ~ elect*"], [], [], []),
    (["text > \"select 7\""], [8, 9], [], []),
    (["cached = true"], [0, 2, 4, 6, 8], [], []),
    (["cached != 1"], [1, 3, 5, 7, 9], [], []),
    (["id >= 3", "seconds < 1.5"], [3, 4, 5], [], []),
    (["id ~ fr*", "share >= 0"], [], [], range(1, 10)),
)


class WhereTest(TracedTest):
    def setUp(self):
        super().setUp()
        recorded = self.record(TYPED_EVENTS, options=("--no-libcall",))
        self.assertEqual(recorded.status, 0, recorded.stderr)
        self.trace = recorded.trace

    @staticmethod
    def where(conditions):
        return [option for condition in conditions for option in ("--where", condition)]

    def export(self, form, *options):
        """The bytes of the file, and what export prints."""
        out = self.directory / f"out.{form}"
        done = arctrace("export", f"--to={form}", "--force", "-o", out, *options, self.trace)
        self.assertEqual(done.returncode, 0, done.stderr)
        data = out.read_bytes()
        out.unlink()
        return data, done.stderr

    def dumped(self, *options):
        """The lines of dump: events, the others, and the line about events that it left out."""
        lines = [json.loads(line) for line in read("dump", "--format=json", *options, self.trace).splitlines()]
        kinds = collections.defaultdict(list)
        for line in lines:
            kinds[line["type"] if line["type"] in ("EVENT", "LEFT_OUT") else "other"].append(line)
        return kinds["EVENT"], kinds["other"], kinds["LEFT_OUT"]

    @cases.in_gate
    def test_conditions(self):
        events, others, left_out = self.dumped()
        self.assertEqual(left_out, [])
        self.assertEqual(len(events), ALL)
        numbered = {name: [event for event in events if event["event"] == name] for name in NAMES}
        for conditions, *numbers in CONDITIONS:
            wanted = {name: [numbered[name][i] for i in wanted] for name, wanted in zip(NAMES, numbers)}
            found, other, left_out = self.dumped(*self.where(conditions))
            self.assertEqual({name: [e for e in found if e["event"] == name] for name in NAMES}, wanted, conditions)
            self.assertEqual(other, others)
            out = ALL - len(found)
            self.assertEqual([(line["events_left_out"], line["where"]) for line in left_out], [(out, conditions)])
        at = numbered["db.row"][3]["fields"]["at"]
        found, _, _ = self.dumped("--where", f"at = {at}")
        self.assertEqual(found, [numbered["db.row"][3]])

    @cases.in_gate
    def test_every_reader_has_the_same_events_and_says_how_many_are_left_out(self):
        options = self.where(["id >= 3", "seconds < 1.5"])
        said = f"{ALL - 3} events left out by --where 'id >= 3' --where 'seconds < 1.5'"
        wanted = ["3", "4", "5"]
        self.assertIn(f"\n# {said}\n", read("dump", *options, self.trace))
        flow = read("report", "--view=flow", *options, self.trace)
        self.assertIn(f"\n{said}\n", flow)
        self.assertEqual([line.split("id=")[1].split()[0] for line in flow.splitlines() if "* EVENT " in line], wanted)
        report = read_report(self.trace, "flow", *options)
        self.assertEqual((report["summary"]["events_left_out"], report["summary"]["where"]),
                         (ALL - 3, ["id >= 3", "seconds < 1.5"]))
        self.assertEqual([str(e["fields"]["id"]) for e in report["flow"] if e["type"] == "EVENT"], wanted)

        exports = {form: self.export(form, *options) for form in ("csv", "ndjson", "chrome", "perfetto", "sqlite")}
        for form, (_, message) in exports.items():
            self.assertIn(f"arctrace: {said}\n", message, form)
        rows = list(csv.DictReader(io.StringIO(exports["csv"][0].decode())))
        self.assertEqual([row["fields"].split()[0] for row in rows if row["type"] == "event"],
                         [f"id={i}" for i in wanted])
        self.assertEqual([(row["name"], row["fields"]) for row in rows if row["type"] == "left-out"],
                         [("[events]", f"by=--where 'id >= 3' --where 'seconds < 1.5' events={ALL - 3}")])
        rows = [json.loads(line) for line in exports["ndjson"][0].splitlines()]
        self.assertEqual([str(row["fields"]["fields"]["id"]) for row in rows if row["type"] == "event"], wanted)
        self.assertEqual([row["fields"]["events"] for row in rows if row["type"] == "left-out"], [ALL - 3])
        chrome = json.loads(exports["chrome"][0])
        self.assertEqual(len([e for e in chrome["traceEvents"] if e.get("name") in NAMES]), 3)
        self.assertEqual([line for line in chrome["left_out"] if "--where" in line], [said])
        perfetto = exports["perfetto"][0]
        self.assertIn(said.encode(), perfetto)
        self.assertNotIn(b"ui.frame", perfetto)
        database = sqlite3.connect(":memory:")
        self.addCleanup(database.close)
        database.deserialize(exports["sqlite"][0])
        self.assertEqual(database.execute("SELECT count(*) FROM events WHERE type = 'event'").fetchone(), (3,))
        facts = dict(database.execute("SELECT key, value FROM trace"))
        self.assertEqual(int(facts["events_left_out"]), ALL - 3)
        self.assertEqual(facts["where"], "--where 'id >= 3' --where 'seconds < 1.5'")

    @cases.in_gate
    def test_what_is_recorded_is_what_would_be_shown(self):
        """A condition means the same in record and in dump; events that it left out are counted."""
        def content(events):
            return [[event["event"], event["fields"]] for event in events if "at" not in event["fields"]]
        for conditions, *numbers in CONDITIONS:
            recorded = self.record(TYPED_EVENTS, options=("--no-libcall", *self.where(conditions)))
            shown, _, _ = self.dumped(*self.where(conditions))
            lines = read("dump", "--type=EVENT", "--format=json", recorded.trace).splitlines()
            events = [json.loads(line) for line in lines]
            self.assertEqual(content(events), content(shown), conditions)
            self.assertEqual(len(events), sum(map(len, numbers)), conditions)
            summary = read_report(recorded.trace, "flat")["summary"]
            self.assertEqual((summary["records"], summary["filtered_out"], summary["lost"]),
                             (len(events), ALL - len(events), 0), conditions)
            self.assertIn(f", {ALL - len(events)} filtered out, ", recorded.stderr)

    @cases.in_gate
    def test_every_export_says_what_the_recording_left_out(self):
        self.trace.unlink()
        self.trace = self.record(TYPED_EVENTS, options=("--no-libcall", "--where", "id = 5")).trace
        out = ALL - 2
        said = f"{out} events, instants and counters left out by the recording's filter"
        rows = list(csv.DictReader(io.StringIO(self.export("csv")[0].decode())))
        self.assertEqual([(row["name"], row["fields"]) for row in rows if row["type"] == "left-out"],
                         [("[events]", f"by=the recording's filter events={out}")])
        rows = [json.loads(line) for line in self.export("ndjson")[0].splitlines()]
        self.assertEqual([row["fields"]["events"] for row in rows if row["type"] == "left-out"], [out])
        self.assertEqual(json.loads(self.export("chrome")[0])["left_out"], [said])
        self.assertIn(said.encode(), self.export("perfetto")[0])
        for form in ("speedscope", "callgrind"):
            self.assertIn(f"{out} filtered out".encode(), self.export(form)[0])
        database = sqlite3.connect(":memory:")
        self.addCleanup(database.close)
        database.deserialize(self.export("sqlite")[0])
        self.assertEqual(database.execute("SELECT value FROM trace WHERE key = 'filtered_out'").fetchone(), (out,))

    @cases.in_gate
    def test_while_a_program_runs(self):
        """Events are written at once and in place, with a condition that ctl sets, and without."""
        source = support.API + f"""
import subprocess
api.arctrace_reserve.restype = ctypes.c_void_p
class Field(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_uint32)]
event = api.arctrace_define_event(b"step", 0, (Field * 1)(Field(b"number", 3)), 1)
def steps():
    for i in range(100):
        number = ctypes.c_uint32(i)
        api.arctrace_write(event, ctypes.byref(number), 4)
        held = api.arctrace_reserve(event, 4)
        if held:
            ctypes.memmove(held, ctypes.byref(number), 4)
            api.arctrace_commit(ctypes.c_void_p(held))
def ctl(*options):
    subprocess.run([{ARCTRACE!r}, "ctl", os.environ["ARCTRACE_SESSION"], *options], check=True)
steps()
ctl("--where", "number >= 90")
steps()
ctl("--where", "number < 1.5")
steps()
ctl("--record-all")
steps()
"""
        recorded = self.record(sys.executable, "-c", source, options=("--no-libcall",))
        self.assertEqual(recorded.status, 0, recorded.stderr)
        lines = read("dump", "--type=EVENT", "--format=json", recorded.trace).splitlines()
        numbers = [json.loads(line)["fields"]["number"] for line in lines]
        twice = [[i, i] for i in range(100)]
        self.assertEqual(numbers, sum(twice + twice[90:] + twice[:2] + twice, []))
        self.assertEqual(read_report(recorded.trace, "flat")["summary"]["filtered_out"], 180 + 196)

    @cases.in_gate
    def test_what_no_recorded_event_can_answer_is_said(self):
        for condition, problem in (("idd = 1", 'no event has a field "idd"'),
                                   ("cached < true", "which only = and != compare")):
            recorded = self.record(TYPED_EVENTS, options=("--no-libcall", "--where", condition))
            self.assertEqual(recorded.status, 0)
            self.assertIn(f"warning: --where '{condition}': ", recorded.stderr)
            self.assertIn(problem, recorded.stderr)
        refused("record", "--where", "id", "--", "true")

    @cases.in_gate
    def test_only_what_would_be_shown_counts(self):
        """Other options leave out events of other times, threads and types."""
        condition = ["--where", "id = 5"]
        events, _, _ = self.dumped()
        middle_ns = events[ALL // 2]["time_ns"] + 1
        late = [e for e in events if e["time_ns"] >= middle_ns]
        _, _, left_out = self.dumped(*condition, "-r", f"{middle_ns}ns~")
        kept = [e for e in late if e["fields"]["id"] in (5, "5")]
        self.assertEqual(left_out[0]["events_left_out"], len(late) - len(kept))
        report = read_report(self.trace, "flow", *condition, "-r", f"{middle_ns}ns~")
        self.assertEqual(report["summary"]["events_left_out"], len(late) - len(kept))
        for options in (["--type=THREAD"], [f"--pid={2**31 - 1}"]):
            self.assertEqual(self.dumped(*condition, *options)[2][0]["events_left_out"], 0, options)
        self.assertIn("no record passes the filters",
                      arctrace("dump", "--type=EVENT", "--where", "text = none", self.trace).stderr)

    @cases.in_gate
    def test_what_no_event_can_answer_is_refused(self):
        fields = "at, cached, id, seconds, share, text"
        for condition, problem in (
                ("idd = 1", f'no event has a field "idd"; there are {fields}; did you mean "id"?'),
                ("seconds = soon", '"soon" is not a number, and seconds is f64'),
                ('seconds = "1"', '"1" is not a number, and seconds is f64'),
                ("at ~ 0x*", "~ compares texts, and at is x64"),
                ("cached = maybe", '"maybe" is neither true nor false, and cached is bool'),
                ("cached < true", "cached is bool, which only = and != compare")):
            for command in (["dump"], ["report", "--view=flow"], ["export", "--to=csv", "-o", "-"]):
                done = arctrace(*command, "--where", condition, self.trace)
                self.assertEqual((done.returncode, done.stdout, done.stderr),
                                 (2, "", f"arctrace: --where '{condition}': {problem}\n"))
        refused("report", "--view=tree", "--where", "id = 5", self.trace)
        refused("export", "--to=pprof", "-o", self.directory / "out", "--where", "id = 5", self.trace)


if __name__ == "__main__":
    cases.main()
