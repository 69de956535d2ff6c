"""The server of arctrace view is compared with the report; the file of export --to=html."""

import base64
import csv
import gzip
import json
import os
import re
import sys
import tempfile
import unittest
import urllib.parse
import urllib.request

import browser
import cases
import support
from command import arctrace, read, read_report
from served_trace import HERE, HOSTILE, SECONDS, ServedTest, Server, row_sums
from test_kernel import NO_KERNEL
from tracing import TracedTest

STATUS_ERROR = 2
STATE_LEVELS = 4  # rows of a lane before those of calls: running, ready, blocked, not known


# More short calls than the file has space for, in one process; and a child that never waits and ends last, so that the
# critical path is in it from its end to its beginning.
MANY = support.API + """
import select
outer, inner, last = key("outer"), key("inner"), key("last")
ends, begun = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    os.close(ends[1])
    made = 0
    while made < 2000 or not select.select(ends[:1], [], [], 0)[0]:
        api.arctrace_enter(last)
        api.arctrace_exit(last)
        made += 1
        if made == 1: os.write(begun[1], b".")
        end = time.monotonic() + 0.001
        while time.monotonic() < end: pass
    os._exit(0)
os.read(begun[0], 1)  # until then the child would seem to have begun in what we are in
api.arctrace_enter(outer)
for _ in range(500_000):
    api.arctrace_enter(inner)
    api.arctrace_exit(inner)
api.arctrace_exit(outer)
os.close(ends[1])
os.waitpid(child, 0)
"""


class HtmlFileTest(TracedTest):
    """Compares the calls in the file of a large trace with the same calls as CSV."""

    def record_many(self, *options):
        return self.record(sys.executable, "-c", MANY, options=("--no-libcall", "-b", "64M", *options)).trace

    def calls(self, trace):
        """(function, pid, start, duration) of each call."""
        path = self.directory / "calls.csv"
        self.export(trace, "csv", path)
        with path.open() as file:
            return [(row["name"], int(row["pid"]), int(row["start_ns"]), int(row["duration_ns"]))
                    for row in csv.DictReader(file) if row["type"] in ("call", "frame")]

    def export(self, trace, form, path, *options):
        done = arctrace("export", f"--to={form}", "--force", "-o", path, *options, trace, timeout=SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)

    def page(self, trace, *options):
        """The data of the file."""
        path = self.directory / "page.html"
        self.export(trace, "html", path, *options)
        self.assertLess(path.stat().st_size, 5_000_000)
        packed = re.search(r'id="data">([^<]*)<', path.read_text())[1]
        return json.loads(gzip.decompress(base64.b64decode(packed)))

    def exact_calls(self, page):
        """As in calls(), the calls that are in the file with their times; and the number of the others."""
        found, others = set(), 0
        for index, rows in page["timeline"]["lanes"]:
            for level, stretches, crowds in rows:
                if level < STATE_LEVELS:
                    continue
                at = page["timeline"]["from_ns"]
                for i in range(0, len(stretches), 4):
                    at += stretches[i]
                    name = page["functions"][stretches[i + 2]][0]
                    found.add((name, page["lanes"][index]["pid"], at, stretches[i + 1]))
                others += sum(crowds[2::4])
        return found, others

    @cases.not_in_gate
    def test_calls_of_ranges_are_exact(self):
        trace = self.record_many()
        calls = self.calls(trace)
        self.assertGreater(len(calls), 500_000)
        found, others = self.exact_calls(self.page(trace))
        self.assertLess(len(found), len(calls) - 100_000)
        # Each call is there in one of the two ways.
        self.assertEqual(len(found) + others, len(calls))
        inner = [call for call in calls if call[0] == "inner"]
        ranges = [(inner[i][2], inner[i + 5000][2]) for i in (100_000, 400_000)]
        page = self.page(trace, *(f"--exact={start}ns~{stop}ns" for start, stop in ranges))
        found, others = self.exact_calls(page)
        self.assertEqual(len(found) + others, len(calls))
        wanted = {call for call in calls for start, stop in ranges
                  if call[2] < stop and (call[2] + call[3] > start or call[2] == start)}
        self.assertGreater(len(wanted), 10_000)
        self.assertEqual(wanted - found, set())
        self.assertIn("Every call of the ranges that were asked for is exact.", page["left_out"])
        # More calls than there is space for: the longest of them are there, and the file says how long they are.
        page = self.page(trace, "--exact=~")
        self.assertRegex(page["left_out"], "Of the calls of the ranges that were asked for, those of .* or more")
        found, others = self.exact_calls(page)
        self.assertEqual(len(found) + others, len(calls))

    @cases.not_in_gate
    @unittest.skipIf(browser.CHROMIUM is None, "chromium is not installed")
    def test_exact_calls_are_drawn_one_by_one(self):
        """The page zooms in on a range that is exact."""
        trace = self.record_many()
        inner = [call[2] for call in self.calls(trace) if call[0] == "inner"]
        self.page(trace, f"--exact={inner[100_000]}ns~{inner[105_000]}ns")
        # The program was not interrupted among these calls, so that each is wide enough to be drawn.
        first = min(range(100_000, 104_980), key=lambda i: inner[i + 19] - inner[i])
        starts = inner[first:first + 20]
        with tempfile.TemporaryDirectory() as directory:
            page = browser.Browser(directory)
            try:
                page.open((self.directory / "page.html").as_uri())
                page.wait("window.arctracePage && arctracePage.timeLine.isShown")
                page.run(f"arctracePage.timeLine.look({starts[0]}, {starts[-1]})")
                page.wait("arctracePage.timeLine.visible().some(({ index }) => arctracePage.timeLine.dataOf(index)"
                          f".rows.some((row) => {starts}.every((start) => row.start.includes(start))))")
                self.assertEqual(page.problems, [])
            finally:
                page.close()

    def test_bad_ranges(self):
        for arguments, says in ((("--to=html", "--exact=1s"), "START~STOP"), (("--to=html", "--exact=2s~1s"), "2s~1s"),
                                (("--to=csv", "--exact=1s~2s"), "--to=csv")):
            done = arctrace("export", *arguments, "-o", self.directory / "x", "none", timeout=SECONDS)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (STATUS_ERROR, 1), done.stderr)
            self.assertIn(says, done.stderr)

    @cases.not_in_gate
    @unittest.skipIf(NO_KERNEL, NO_KERNEL or "")
    def test_calls_of_the_critical_path_are_exact(self):
        trace = self.record_many("--kernel=bpf")
        calls = self.calls(trace)
        page = self.page(trace)
        found, others = self.exact_calls(page)
        self.assertEqual(len(found) + others, len(calls))
        last = {call for call in calls if call[0] == "last"}
        self.assertGreaterEqual(len(last), 2000)
        self.assertEqual(last - found, set())
        self.assertLess(len(found), len(calls) - 100_000)
        self.assertIn("Every call of the critical path is exact.", page["left_out"])


class EarlyTest(ServedTest):
    """Answers of the server while it reads a trace of ten million calls, which takes much longer than they do."""

    TURNS = 310_000

    def early(self, name, **values):
        """An answer that was made before the whole was read; otherwise it is 409."""
        return self.server.api(name, whole=0, **values)

    @cases.not_in_gate
    def test_ranges_are_exact_and_the_rest_is_not_known(self):
        self.server = Server(self.trace)
        summary = self.early("summary")
        self.assertFalse(summary["is_whole"])
        lanes = ",".join(map(str, range(len(summary["lanes"]))))
        whole = {"from": summary["from_ns"], "until": summary["until_ns"], "lanes": lanes}
        dense = self.early("timeline", pixel=(whole["until"] - whole["from"]) // 100, exact=1, **whole)
        begin = self.densest(self.early("timeline", pixel=1, **whole))
        end = begin + 20_000
        rows = self.early("timeline", pixel=1, exact=1, lanes=lanes, **{"from": begin, "until": end})
        totals = self.early("totals", **{"from": begin, "until": end})["totals"]
        names = self.early("names", function=0, lane=0)["functions"]
        for name in ("totals", "locks", "search"):
            self.assertEqual(self.server.status("api/" + name, whole=0, text="xyz"), 503, name)
        self.assertEqual(self.server.status("api/flame", whole=0, per="all"), 503)
        lane, level, call = self.some_call(rows)
        found = self.early("call", lane=lane, level=level, start=call[0], stop=call[0] + call[1])
        progress = self.server.api("progress")
        self.assertFalse(progress["is_whole"])
        self.assertLess(progress["share"], 1)

        self.assertFalse(dense["is_exact"])
        self.assertTrue(dense["is_too_long"])
        self.assertEqual(sum(row_sums(dense)), 0)
        written = [sum(density[2::3]) for _, _, density in dense["lanes"]]
        self.assertEqual(written, [one["bytes"] for one in summary["lanes"]])
        self.assertEqual(sum(written) > 200_000_000, True, written)
        self.assertTrue(rows["is_exact"])
        # The first thread waits all the time, in calls that last from before the range to after it.
        waits = next(i for i, lane in enumerate(summary["lanes"]) if lane["tid"] == lane["pid"])
        self.assertGreater(len(dict((lane, lane_rows) for lane, lane_rows, *_ in rows["lanes"])[waits]), 0)
        self.assertEqual(self.calls_within(rows, names, summary, begin, end), self.exported(begin, end))
        flat = read_report(self.trace, "flat", "-r", f"{begin}ns~{end}ns")["functions"]
        self.assertEqual(sorted((names[row[0]][0], *row[1:4]) for row in totals),
                         sorted((row["name"] if row["name"].isprintable() and "\\" not in row["name"] else
                                 names[next(r[0] for r in totals if r[1:4] == [row["calls"], row["base_ns"], row["cum_ns"]])][0],
                                 row["calls"], row["base_ns"], row["cum_ns"]) for row in flat))
        self.assertEqual((found["function"], found["start_ns"], found["stop_ns"]), (call[2], call[0], call[0] + call[1]))

        self.server.wait_whole()
        self.assertEqual(self.server.status("api/summary", whole=0), 409)
        self.is_that_of_the_file()

    def densest(self, answer):
        """The begin of the block that was written in the shortest time: beside other work a thread may be without a CPU
        for long."""
        found = []
        for _, _, density in answer["lanes"]:
            at = answer["from_ns"]
            for i in range(0, len(density), 3):
                at += density[i]
                if density[i + 2] > 60_000:
                    found.append((density[i + 1], at))
        return min(found)[1]

    def some_call(self, answer):
        """A call that is wholly in the answer: lane, level, and begin, duration, function."""
        for lane, rows in answer["lanes"]:
            for level, stretches, _ in rows:
                at = answer["from_ns"]
                for i in range(0, len(stretches), 4):
                    at += stretches[i]
                    if level > STATE_LEVELS and not stretches[i + 3]:
                        return lane, level, (at, stretches[i + 1], stretches[i + 2])
        raise AssertionError("no call")

    def calls_within(self, answer, names, summary, begin, end):
        """(function, tid, start, duration) of calls that begin and end within the range, sorted."""
        found = []
        for lane, rows in answer["lanes"]:
            for level, stretches, _ in rows:
                at = answer["from_ns"]
                for i in range(0, len(stretches), 4):
                    at += stretches[i]
                    if level >= STATE_LEVELS and at > begin and at + stretches[i + 1] < end:
                        found.append((names[stretches[i + 2]][0], summary["lanes"][lane]["tid"], at, stretches[i + 1]))
        self.assertGreater(len(found), 20)
        return sorted(found)

    def exported(self, begin, end):
        """The same calls, from all of the trace."""
        path = self.directory / "calls.csv"
        read("export", "--to=csv", "-o", path, "-r", f"{begin - 10**7}ns~{end + 10**7}ns", self.trace,
             timeout=SECONDS)
        calls = []
        with path.open() as file:
            for row in csv.DictReader(file):
                if row["type"] not in ("call", "frame"):
                    continue
                start, duration = (int(row[name] or 0) for name in ("start_ns", "duration_ns"))
                if start > begin and start + duration < end:
                    name = row["name"] if row["name"].isprintable() and "\\" not in row["name"] else None
                    calls.append((name, int(row["tid"]), start, duration))
        path.unlink()
        harmful = next(name for name, *_ in self.server.api("names", function=0, lane=0)["functions"] if "<script>" in name)
        return sorted((name or harmful, *rest) for name, *rest in calls)

    def is_that_of_the_file(self):
        """In the end the page is equal to the exporter's, which reads the trace by itself."""
        path = self.directory / "page.html"
        read("export", "--to=html", "-o", path, self.trace, timeout=SECONDS)
        file = json.loads(gzip.decompress(base64.b64decode(re.search(r'id="data">([^<]*)<', path.read_text())[1])))
        summary = self.server.api("summary")
        self.assertGreater(len(summary["functions"]), 5)
        for name in ("is_whole", "command", "from_ns", "until_ns", "wall_ns", "thread_ns", "records_text", "lost", "gaps", "lanes",
                     "functions"):
            self.assertEqual(summary[name], file[name], name)
        totals = self.server.api("totals")
        self.assertTrue(totals["parts"])
        for name in ("parts", "totals"):
            self.assertEqual(totals[name], file[name], name)
        self.assertEqual(self.server.api("locks")["locks"], file["locks"])
        for per in ("all", "process", "thread"):
            self.assertEqual(self.server.api("flame", per=per)["groups"], file["flames"][per]["groups"])

    def test_ends_while_it_reads(self):
        self.server = Server(self.trace)
        self.assertFalse(self.early("summary")["is_whole"])
        status, errors = self.server.close()
        self.server = None
        self.assertEqual((status, errors.count("\n")), (0, 1), errors)

    def test_a_file_that_is_replaced_stays_what_it_was(self):
        trace = self.directory / "linked"
        trace.hardlink_to(self.trace)
        self.server = Server(trace)
        summary = self.early("summary")
        other = self.directory / "other"
        other.write_bytes(b"something else")
        other.rename(trace)
        middle = (summary["from_ns"] + summary["until_ns"]) // 2
        self.assertGreater(len(self.early("totals", **{"from": middle, "until": middle + 10**6})["totals"]), 0)
        trace.unlink()


class ViewTest(ServedTest):
    def test_only_who_has_the_address_is_answered(self):
        server = self.serve()
        place = urllib.parse.urlsplit(server.url)
        host = place.netloc
        self.assertEqual(server.raw(place.path, host), 200)
        self.assertEqual(server.raw(place.path, f"localhost:{place.port}"), 200)
        for bad in ("evil.example", f"evil.example:{place.port}", "127.0.0.1", "", None):
            self.assertIn(server.raw(place.path, bad), (400, 403), bad)
        wrong = place.path[:-2] + ("0" if place.path[-2] != "0" else "1") + "/"
        for path in ("/", wrong, wrong + "api/summary", place.path[:-1], place.path[:20] + "/"):
            self.assertEqual(server.raw(path, host), 403, path)
        self.assertEqual(server.raw(place.path, host, "POST"), 405)
        with urllib.request.urlopen(server.url, timeout=SECONDS) as answer:
            self.assertIn("default-src 'none'", answer.headers["Content-Security-Policy"])
            self.assertNotIn("unsafe", answer.headers["Content-Security-Policy"])
        status, errors = server.close()
        self.server = None
        self.assertEqual(status, 0, errors)

    def test_bad_requests(self):
        server = self.serve()
        good = {"from": 0, "until": 1000, "pixel": 10, "lanes": "0"}
        self.assertEqual(server.status("api/timeline", **good), 200)
        for name, value in (("from", "x"), ("from", 2000), ("from", str(1 << 70)), ("until", "0"), ("pixel", "-1"),
                            ("lanes", "a"), ("lanes", ",".join(["0"] * 500)), ("from", str(-(1 << 63)))):
            values = {**good, name: value}
            if name == "from" and value == str(-(1 << 63)):
                values["until"] = str((1 << 63) - 1)
            self.assertEqual(server.status("api/timeline", **values), 400, values)
        self.assertEqual(server.status("api/timeline", **good, more="x" * 9000), 431)
        self.assertEqual(server.raw("/", "x", "a(b"), 400)
        self.assertEqual(server.status("api/timeline"), 400)
        self.assertEqual(server.status("api/flame", per="planet"), 400)
        self.assertEqual(server.status("api/totals", **{"from": 5}), 400)
        self.assertEqual(server.status("api/search", text="x"), 400)
        self.assertEqual(server.status("api/call", lane=99999, level=STATE_LEVELS, start=0, stop=1), 404)
        self.assertEqual(server.status("api/nothing"), 404)
        self.assertEqual(server.status("../page.js"), 404)
        self.assertEqual(server.status("api/timeline", **{**good, "lanes": "77777"}), 200)

    def test_sums_are_those_of_the_report(self):
        os.link(self.trace, self.directory / "checked.data")  # the copy is checked at the end
        server = self.serve()
        summary = server.api("summary")
        flat = read_report(self.trace, "flat")["functions"]
        totals = {summary["functions"][row[0]][0]: row for row in server.api("totals")["totals"]}
        self.assertEqual(len(totals), len(flat))
        for row in flat:
            if len(row["name"]) > 4096 or not row["name"].isprintable() or "\\" in row["name"]:
                continue  # the page has an escaped name
            ours = totals[row["name"]]
            self.assertEqual(ours[1:4], [row["calls"], row["base_ns"], row["cum_ns"]])
        self.assertEqual(sum(row["calls"] for row in flat), sum(row[1] for row in totals.values()))
        calls = sum(row["calls"] for row in flat)
        # Phases of a process, such as [loader], are no calls of a lane.
        in_lanes = sum(row["calls"] for row in flat if not row["name"].startswith("["))
        inherited = 2  # main and fork continue in the child, and are not counted there
        self.assertEqual(sum(lane["calls"] for lane in summary["lanes"]), in_lanes)
        for per in ("all", "process", "thread"):
            nodes = [group["nodes"] for group in server.api("flame", per=per)["groups"]]
            self.assertEqual(sum(sum(one[2::6]) for one in nodes), summary["thread_ns"])
            self.assertEqual(sum(sum(one[5::6]) for one in nodes), calls)
        lanes = ",".join(map(str, range(len(summary["lanes"]))))
        whole = {"from": summary["from_ns"], "until": summary["until_ns"] + 1, "lanes": lanes}
        for pixel in (1, 1000, 10**7):
            answer = server.api("timeline", pixel=pixel, **whole)
            self.assertEqual(sum(row_sums(answer)), in_lanes + inherited, pixel)
        self.assertGreater(row_sums(server.api("timeline", pixel=1000, **whole))[1], 0)

    def test_records_are_those_of_the_whole(self):
        """A page that shows a small part of the time from its beginning on counts all records, too."""
        self.server = server = Server(self.trace)
        trace = read_report(self.trace, "flat")["summary"]
        early = server.api("summary")
        middle = (early["from_ns"] + early["until_ns"]) // 2
        server.api("timeline", pixel=1, lanes="0", exact=1, **{"from": middle, "until": middle + 1000})
        server.wait_whole()
        server.api("totals", **{"from": middle, "until": middle + 1000})
        whole = server.api("summary")
        self.assertEqual((whole["records"], whole["lost"]), (trace["records"], trace["lost"]))

    def test_names_are_escaped_once(self):
        server = self.serve()
        summary = server.api("summary")
        once = HOSTILE.partition("<")[0].replace("\\", "\\\\")
        self.assertNotEqual(once, HOSTILE.partition("<")[0])
        self.assertIn(f" '{once}<script>", summary["command"])
        self.assertTrue(any(f" '{once}<script>" in line for line in summary["facts"]), summary["facts"])
        self.assertTrue(any(name.startswith(once + "<") for name, *_ in summary["functions"]))
        self.assertTrue(any(lane["name"].startswith(once) for lane in summary["lanes"]), summary["lanes"])

    def test_a_range_is_that_of_the_report(self):
        server = self.serve()
        summary = server.api("summary")
        width = summary["until_ns"] - summary["from_ns"]
        begin, end = summary["from_ns"] + width // 2, summary["from_ns"] + width * 3 // 4
        flat = read_report(self.trace, "flat", "-r", f"{begin}ns~{end}ns")["functions"]
        rows = server.api("totals", **{"from": begin, "until": end})["totals"]
        self.assertEqual(sorted(row[1:4] for row in rows),
                         sorted([row["calls"], row["base_ns"], row["cum_ns"]] for row in flat))

    def test_a_call(self):
        server = self.serve()
        summary = server.api("summary")
        lane = max(range(len(summary["lanes"])), key=lambda i: summary["lanes"][i]["calls"])
        answer = server.api("timeline", pixel=1, lanes=lane, exact=1,
                            **{"from": summary["from_ns"], "until": summary["until_ns"]})
        rows = {row[0]: row[1] for row in answer["lanes"][0][1]}
        start, length, what, _ = rows[STATE_LEVELS][:4]
        start += answer["from_ns"]
        call = server.api("call", lane=lane, level=STATE_LEVELS, start=start, stop=start + length)
        self.assertEqual((call["function"], call["start_ns"], call["stop_ns"]), (what, start, start + length))
        self.assertEqual(call["path"], [what])
        self.assertEqual(call["self_ns"] + sum(one[2] for one in call["callees"]), length)
        self.assertEqual(server.status("api/call", lane=lane, level=STATE_LEVELS, start=start + 1,
                                       stop=start + length), 404)

    def test_slowest_calls_are_those_of_the_report(self):
        server = self.serve()
        summary = server.api("summary")
        names = [name for name, *_ in summary["functions"]]
        function = names.index("outer")
        begin = summary["from_ns"] + (summary["until_ns"] - summary["from_ns"]) // 2
        for times, options in (({}, ()), ({"from": begin, "until": summary["until_ns"]}, ("-r", f"{begin}ns~{summary['until_ns']}ns"))):
            report = read_report(self.trace, "slowest", "-F", "outer", "-n", "12", *options)["slowest"]
            rows = server.api("slowest", function=function, **times)["slowest"]
            self.assertEqual(len(rows), 12)
            for (lane, _, start, stop, *_), call in zip(rows, report):
                self.assertEqual(stop - start, call["delta_ns"])
            lane, level, start, stop, *_ = rows[0]
            self.assertEqual((start, summary["lanes"][lane]["tid"]), (report[0]["start_ns"], report[0]["tid"]))
        lane, level, start, stop, *_ = server.api("slowest", function=function)["slowest"][0]
        call = server.api("call", lane=lane, level=level, start=start, stop=stop)
        self.assertEqual(call["function"], function)
        self.assertEqual(server.status("api/slowest"), 400)
        self.assertEqual(server.api("slowest", function=10**6)["slowest"], [])

    def test_processes_have_command_lines(self):
        server = self.serve()
        summary = server.api("summary")
        answer = server.api("processes")
        program, child = answer["processes"]
        self.assertEqual(answer["process_count"], 2)
        self.assertEqual((program["depth"], child["depth"]), (0, 1))
        self.assertEqual(program["command"], summary["command"])
        for one in answer["processes"]:
            self.assertEqual(summary["lanes"][one["lane"]]["tid"], one["pid"])

    def test_arguments_of_a_call_alone(self):
        server = self.serve()
        summary = server.api("summary")
        function = [name for name, *_ in summary["functions"]].index("usleep")
        lane, level, start, stop, *_ = server.api("slowest", function=function)["slowest"][0]
        args = server.api("args", lane=lane, level=level, start=start)["args"]
        self.assertIn("300", args)
        self.assertEqual(args, server.api("call", lane=lane, level=level, start=start, stop=stop)["args"])
        self.assertEqual(server.status("api/args", lane=lane, level=level, start=start + 1), 404)

    def test_lanes_have_their_work_and_the_parts_of_their_life(self):
        server = self.serve()
        summary = server.api("summary")
        names = [name for name, *_ in summary["functions"]]
        parts = {names[part[0]] for lane in summary["lanes"] for part in lane["parts"]}
        self.assertIn("[loader]", parts)
        if not NO_KERNEL:
            self.assertLessEqual(sum(lane["cpu_ns"] for lane in summary["lanes"]), summary["cpu_ns"] + 1)
            self.assertGreater(sum(lane["cpu_ns"] for lane in summary["lanes"]), summary["cpu_ns"] // 2)
        waits = {name for name, _, *waits in summary["functions"] if waits}
        self.assertIn("pthread_join", waits)
        self.assertNotIn("outer", waits)

    @unittest.skipIf(NO_KERNEL, NO_KERNEL or "")
    def test_the_critical_path_is_that_of_the_report(self):
        server = self.serve()
        report = read_report(self.trace, "critical-path")
        ours = server.api("critical-path")
        self.assertEqual((ours["start_ns"], ours["wall_ns"]), (report["start_ns"], report["wall_ns"]))
        places = [[row.pop(name) for name in ("lane", "at_ns", "until_ns")] for row in ours["critical_path"]]
        self.assertEqual(ours["critical_path"], report["critical_path"][:500])
        lanes = server.api("summary")["lanes"]
        for row, (lane, begin, end) in zip(ours["critical_path"], places):
            self.assertEqual((lanes[lane]["pid"], lanes[lane]["tid"]), (row["pid"], row["tid"]))
            self.assertTrue(report["start_ns"] <= begin < end <= report["stop_ns"], row)
        self.assertEqual(sum(sum(piece[2::2]) for piece in ours["pieces"]), report["wall_ns"])
        # The program has two processes, and ended by itself.
        self.assertTrue(ours["is_explanation"])
        text = read("report", self.trace)
        self.assertIn(" depended on\n", text)
        for row in ours["by_name"]:
            self.assertLessEqual(row["ns"], ours["wall_ns"])
            self.assertEqual(sum(ns for _, ns in row["states"]), row["ns"])
        self.assertTrue(server.api("summary")["has_wake_ups"])
        middle = report["start_ns"] + report["wall_ns"] // 2
        part = server.api("critical-path", **{"from": report["start_ns"], "until": middle})
        self.assertEqual(part["wall_ns"], middle - report["start_ns"])

    def test_sources(self):
        server = self.serve()
        functions = [name for name, *_ in server.api("summary")["functions"]]
        answer = server.api("source", function=functions.index("inner"))
        self.assertEqual(answer["file"], str(HERE / "view/program.c"))
        lines = (HERE / "view/program.c").read_text().split("\n")
        first = answer["first"] - 1
        self.assertEqual(answer["text"], lines[first:][:len(answer["text"])])
        self.assertIn("void inner(", answer["text"][answer["line"] - answer["first"]])
        huge = next(i for i, name in enumerate(functions) if name.startswith("n" * 1000))
        self.assertNotIn("file", server.api("source", function=huge))  # an API name has no source
        self.assertEqual(server.status("api/source", function=len(functions)), 404)

    def test_bad_files(self):
        cut = self.directory / "cut"
        whole = self.trace.read_bytes()
        cut.write_bytes(whole[:len(whole) // 2])  # lacks the end, and the names after it
        for path, says in ((self.directory / "none", "none"), (cut, "--partial"), (self.directory, "")):
            done = arctrace("view", "--no-open", path, timeout=SECONDS)
            self.assertEqual(done.returncode, STATUS_ERROR, path)
            self.assertEqual(done.stdout, "")
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(says, done.stderr)
        cut.unlink()  # the remaining files are checked
        server = self.serve()
        port = str(urllib.parse.urlsplit(server.url).port)
        for value, says in ((port, "cannot listen"), ("70000", "--port"), ("x", "--port")):
            done = arctrace("view", "--no-open", "--port", value, self.trace, timeout=SECONDS)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (STATUS_ERROR, 1), done.stderr)
            self.assertIn(says, done.stderr)

    def test_html_file(self):
        path = self.directory / "trace.html"
        read("export", "--to=html", "-o", path, self.trace, timeout=SECONDS)
        text = path.read_text()
        self.assertLess(len(text), 5_000_000)
        # Names are compressed, and compressed data may have any letters.
        self.assertNotIn("owned", re.sub(r'id="data">[^<]*<', "", text))
        data = json.loads(gzip.decompress(base64.b64decode(re.search(r'id="data">([^<]*)<', text)[1])))
        self.assertEqual(len(data["processes"]), 2)
        self.assertGreater(len(data["slowest"][[name for name, *_ in data["functions"]].index("outer")]), 3)
        self.assertIn("script-src 'nonce-arctrace'", text)
        self.assertNotIn("src=\"page", text)


if __name__ == "__main__":
    cases.main()
