"""Reports, their JSON and the exports say of which functions calls were left out on purpose, since when and by what;
the others have no mark. Functions that were switched off are tested in shim/test_patched.py."""

import base64
import contextlib
import csv
import gzip
import json
import re
import sqlite3
import subprocess
import sys
import time

import cases
import support
from command import read, read_dump, read_info, read_report, start_arctrace
from tracing import TracedTest

ROUND = 50
ATTEMPTS = 5
# For each line of input, 50 times: inner in outer, then leaf, then beside. Prints its session, then a line for each
# input.
ROUNDS = support.API + f"""
outer, inner, leaf, beside = map(key, ("outer", "inner", "leaf", "beside"))
print(os.environ["ARCTRACE_SESSION"], flush=True)
for line in sys.stdin:
    for i in range({ROUND}):
        for k in (outer, inner): api.arctrace_enter(k)
        for k in (inner, outer): api.arctrace_exit(k)
        for k in (leaf, beside):
            api.arctrace_enter(k)
            api.arctrace_exit(k)
    print(flush=True)
"""
NAMES = {"outer", "inner", "leaf", "beside"}


class LeftOutTest(TracedTest):
    def rounds(self, *steps, options=()):
        """Records one input, then for each step what `ctl` is to change, and another input. Returns the trace, and for
        each change the times before and after it, by the machine's clock. A filter that is replaced before the
        recorder has read it, as on a busy machine, is not known later: then everything is repeated."""
        for _ in range(ATTEMPTS):
            trace, moments = self.record_rounds(steps, options)
            if not any("?" in record["filter"] for record in read_dump(trace, "--type", "ENABLED")):
                return trace, moments
            trace.unlink()
        self.fail("the recorder did not see the filters")

    def record_rounds(self, steps, options):
        trace = self.directory / "arctrace.data"
        moments = []
        with start_arctrace("record", "--no-libcall", *options, "-o", trace, "--", sys.executable, "-c", ROUNDS,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
            session = program.stdout.readline().strip()

            def go_round():
                program.stdin.write("\n")
                program.stdin.flush()
                self.assertEqual(program.stdout.readline(), "\n")

            go_round()
            for step in steps:
                before = time.monotonic_ns()
                read("ctl", session, *step)
                moments.append((before, time.monotonic_ns()))
                go_round()
            program.stdin.close()
        self.assertEqual(program.returncode, 0)
        return trace, moments

    def recorded(self, trace):
        """The notes on rows of functions that are not complete, by name; flat, each node of the tree, and arcs have the
        same ones."""
        flat = {row["name"]: row.get("recorded") for row in read_report(trace, "flat")["functions"]
                if row["name"] in NAMES}

        def check_node(node):
            if node["name"] in NAMES:
                self.assertEqual(node.get("recorded"), flat[node["name"]])
            for child in node["children"]:
                check_node(child)
        for thread in read_report(trace, "tree")["threads"]:
            check_node(thread["root"])
        for row in read_report(trace, "arcs")["arcs"]:
            for arc in (row, *row["parents"], *row["children"]):
                if arc["name"] in NAMES:
                    self.assertEqual(arc.get("recorded"), flat[arc["name"]])
        return {name: said for name, said in flat.items() if said is not None}

    def exported(self, trace):
        """(name, begin, duration, reason) of the calls that exports say were left out, which is the same in all of them."""
        out = self.directory / "out"
        read("export", "--to=csv", "-o", out, trace)
        with open(out, encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["type"] == "left-out"]
        by_csv = {(row["name"], int(row["start_ns"]), row["duration_ns"], row["fields"].removeprefix("by="))
                  for row in rows}
        out.unlink()
        read("export", "--to=ndjson", "-o", out, trace)
        rows = [row for row in map(json.loads, out.read_text().splitlines()) if row["type"] == "left-out"]
        by_ndjson = {(row["name"], row["start_ns"], str(row["duration_ns"] or ""), row["fields"]["by"]) for row in rows}
        self.assertEqual(by_csv, by_ndjson)
        out.unlink()
        read("export", "--to=sqlite", "-o", out, trace)
        with contextlib.closing(sqlite3.connect(out)) as base:
            first = base.execute("SELECT min(start_ns) FROM threads").fetchone()[0]
            by_sqlite = {(name or "[functions without calls]", first if start is None else start,
                          "" if duration is None or start is None else str(duration), reason)
                         for name, start, duration, reason in base.execute(
                             "SELECT name, start_ns, duration_ns, reason FROM left_out "
                             "LEFT JOIN functions ON functions.id = function_id")}
            incomplete = {name for name, in base.execute("SELECT name FROM function_sums WHERE incomplete")}
        out.unlink()
        self.assertEqual(by_csv, by_sqlite)
        self.assertEqual(incomplete, {name for name, *_ in by_csv} - {"[functions without calls]"})
        return by_csv

    def assert_notes(self, trace, notes):
        """The rows of flat with these functions have these notes, by name; others have none."""
        text = read("report", "--view=flat", trace)
        found = {name: note for name, note in re.findall(r"  (\w+)(?: \[((?:until|partly)[^]]*)\])?(?: \[recording\])?$", text, re.MULTILINE)
                 if name in NAMES}
        self.assertEqual(found.keys(), {row["name"] for row in read_report(trace, "flat")["functions"]} & NAMES)
        self.assertEqual({name: re.sub(r"\d[\d.]* [a-z]+", "T", note) for name, note in found.items() if note}, notes)
        self.assertEqual("[until], [partly]: calls were left out" in text, bool(notes))
        noted = {name: note for name, note in found.items() if note}
        left_out = read_report(trace, "flat")["left_out"]
        self.assertGreaterEqual(bool(left_out), bool(noted))
        # Views whose rows are no functions list those.
        for view in ("flow", "invocations", "locks", "processes"):
            listed = dict(re.findall(r"^  (\w+) \[((?:until|partly)[^]]*)\]$", read("report", f"--view={view}", trace),
                                     re.MULTILINE))
            self.assertEqual({name: note for name, note in listed.items() if name in NAMES}, noted)
            self.assertEqual(read_report(trace, view)["left_out"], left_out)
        # The page has the same notes.
        out = self.directory / "page.html"
        read("export", "--to=html", "-o", out, trace)
        page = json.loads(gzip.decompress(base64.b64decode(re.search(r'id="data">([^<]*)<', out.read_text())[1])))
        out.unlink()
        self.assertEqual({page["functions"][number][0]: note for number, note in page["notes"]},
                         {name: f" [{note}]" for name, note in noted.items()})
        self.assertEqual(any(line.startswith("  [until], [partly]: ") for line in page["notes_legend"]), bool(notes))
        read("export", "--to=speedscope", "-o", out, trace)
        title = json.loads(out.read_text(encoding="utf-8")).get("name", "")
        out.unlink()
        self.assertEqual("left out: " in title, bool(left_out))

    @cases.in_gate
    def test_without_a_filter(self):
        trace, _ = self.rounds()
        self.assertEqual(self.recorded(trace), {})
        self.assertEqual(self.exported(trace), set())
        self.assert_notes(trace, {})
        self.assertEqual(read_report(trace, "summary")["left_out"], [])
        self.assertNotIn("left calls out", read("report", trace))

    @cases.in_gate
    def test_excluded_from_then_on(self):
        trace, ((before, after),) = self.rounds(("-N", "outer"))
        report = read_report(trace, "flat")
        calls = {row["name"]: row["calls"] for row in report["functions"]}
        self.assertEqual([calls[name] for name in sorted(NAMES)], [2 * ROUND, ROUND, 2 * ROUND, ROUND])
        found = self.recorded(trace)
        self.assertEqual(found.keys(), {"outer", "inner"})
        since = found["outer"]["until_ns"]
        self.assertEqual(found["outer"], {"until_ns": since, "until_by": "ctl -N outer"})
        # Functions that are not filtered may call inner, too.
        self.assertEqual(found["inner"], {"partly": [{"by": "ctl -N outer", "from_ns": since, "to_ns": None}]})
        self.assert_notes(trace, {"outer": "until T", "inner": "partly from T on"})
        exported = self.exported(trace)
        self.assertEqual({(name, duration, reason) for name, _, duration, reason in exported},
                         {("outer", "", "ctl -N outer"), ("inner", "", "ctl -N outer")})
        begin = read_info(trace)["session"]["start_monotonic_ns"]
        self.assertTrue(before <= begin + since <= after, (before, begin, since, after))
        self.assertEqual({start for _, start, _, _ in exported}, {since})
        self.assertEqual(read_report(trace, "summary")["left_out"],
                         [{"by": "ctl -N outer", "from_ns": since, "to_ns": None, "functions": 2}])
        self.assertIn("  2 functions are not complete: ctl -N outer from ", read("report", trace))
        self.assertIn(f" {trace}, 1 run; calls were left out: ctl -N outer\n", read("diff", trace, trace))
        (run,) = json.loads(read("diff", "--format=json", trace, trace))["runs_b"]
        self.assertEqual(run["left_out"], read_report(trace, "summary")["left_out"])
        # Nothing is missing before that.
        early = read_report(trace, "flat", "-r", f"~{since - 1}ns")
        self.assertEqual([row for row in early["functions"] if "recorded" in row], [])

    @cases.in_gate
    def test_excluded_for_a_while(self):
        trace, ((before, _), (_, after)) = self.rounds(("-F", "leaf"), ("--trace-all",))
        found = self.recorded(trace)
        self.assertEqual(found.keys(), NAMES - {"leaf"})
        (stretch,) = found["beside"]["partly"]
        self.assertEqual(stretch["by"], "ctl -F leaf")
        self.assertLess(stretch["from_ns"], stretch["to_ns"])
        for name in found:
            self.assertEqual(found[name], {"partly": [stretch]})
        self.assert_notes(trace, dict.fromkeys(NAMES - {"leaf"}, "partly from T to T"))
        for name, start, duration, _ in self.exported(trace):
            self.assertIn(name, found)
            self.assertEqual((start, start + int(duration)), (stretch["from_ns"], stretch["to_ns"]))
        begin = read_info(trace)["session"]["start_monotonic_ns"]
        self.assertTrue(before <= begin + stretch["from_ns"] < begin + stretch["to_ns"] <= after)

    @cases.in_gate
    def test_in_a_flight_recorder(self):
        """The flight recorder reads a filter when it is set, so that its files know each one."""
        trace, _ = self.rounds(("-N", "leaf"), ("-N", "beside"), options=("--mode=overwrite",))
        found = self.recorded(trace)
        self.assertEqual(found.keys(), {"leaf", "beside"})
        (stretch,) = found["leaf"]["partly"]
        self.assertEqual((stretch["by"], stretch["to_ns"]), ("ctl -N leaf", found["beside"]["until_ns"]))
        self.assertEqual(found["beside"]["until_by"], "ctl -N beside")
        self.assert_notes(trace, {"leaf": "partly from T to T", "beside": "until T"})

    @cases.in_gate
    def test_filters_of_record(self):
        for options, by, names in ((("-t", "1ns"), "-t 1ns", NAMES), (("-D", "1"), "-D 1", NAMES - {"inner"}),
                                   (("-F", "outer"), "-F outer", {"inner"}), (("-N", "leaf"), "-N leaf", set()),
                                   (("-Z", "20"), "-Z 20", set())):
            with self.subTest(options=options):
                trace, _ = self.rounds(options=options)
                partly = {"partly": [{"by": by, "from_ns": None, "to_ns": None}]}
                self.assertEqual(self.recorded(trace), dict.fromkeys(names, partly))
                (cause,) = read_report(trace, "locks")["left_out"]
                self.assertEqual((cause["by"], cause["from_ns"], cause["to_ns"]), (by, None, None))
                self.assertEqual(cause["functions"] == 0, not names)
                self.assert_notes(trace, dict.fromkeys(names, "partly"))
                self.assertEqual({(name, duration, reason) for name, _, duration, reason in self.exported(trace)},
                                 {(name, "", by) for name in names or {"[functions without calls]"}})
                self.assertEqual(read_report(trace, "summary")["left_out"],
                                 [{"by": by, "from_ns": None, "to_ns": None, "functions": len(names)}])
                self.assertIn(f"{by} left calls out\n" if names else f"left out by {by}: functions without a row",
                              read("report", trace))
                trace.unlink()


if __name__ == "__main__":
    cases.main()
