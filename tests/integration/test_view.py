"""The server of arctrace view, and what it says against the report; the file of export --to=html."""

import os
import subprocess
import unittest
import urllib.parse
import urllib.request

from served_trace import HERE, HOSTILE, SECONDS, ServedTest, row_sums
from test_kernel import NO_KERNEL
from trace_checks import ARCTRACE, read_report

STATUS_ERROR = 2


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
        self.assertEqual(server.status("api/call", lane=99999, level=3, start=0, stop=1), 404)
        self.assertEqual(server.status("api/nothing"), 404)
        self.assertEqual(server.status("../page.js"), 404)
        self.assertEqual(server.status("api/timeline", **{**good, "lanes": "77777"}), 200)

    def test_sums_are_those_of_the_report(self):
        os.link(self.trace, self.directory / "checked.data")  # what CheckedTraces looks at
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
        # Parts of a process' life, such as [loader], are no calls of a lane.
        in_lanes = sum(row["calls"] for row in flat if not row["name"].startswith("["))
        inherited = 2  # main and fork go on in the child, and are not counted there
        self.assertEqual(sum(lane["calls"] for lane in summary["lanes"]), in_lanes)
        for per in ("all", "process", "thread"):
            nodes = [group["nodes"] for group in server.api("flame", per=per)["groups"]]
            self.assertEqual(sum(sum(one[2::5]) for one in nodes), summary["thread_ns"])
            self.assertEqual(sum(sum(one[4::5]) for one in nodes), calls)
        lanes = ",".join(map(str, range(len(summary["lanes"]))))
        whole = {"from": summary["from_ns"], "until": summary["until_ns"] + 1, "lanes": lanes}
        for pixel in (1, 1000, 10**7):
            answer = server.api("timeline", pixel=pixel, **whole)
            self.assertEqual(sum(row_sums(answer)), in_lanes + inherited, pixel)
        self.assertGreater(row_sums(server.api("timeline", pixel=1000, **whole))[1], 0)

    def test_names_are_escaped_once(self):
        server = self.serve()
        summary = server.api("summary")
        once = HOSTILE.partition("<")[0].replace("\\", "\\\\")
        self.assertNotEqual(once, HOSTILE.partition("<")[0])
        self.assertIn(f" '{once}<script>", summary["command"])
        self.assertTrue(any(f" '{once}<script>" in line for line in summary["facts"]), summary["facts"])
        self.assertTrue(any(name.startswith(once + "<") for name, _ in summary["functions"]))
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
        start, length, what, _ = rows[3][:4]
        start += answer["from_ns"]
        call = server.api("call", lane=lane, level=3, start=start, stop=start + length)
        self.assertEqual((call["function"], call["start_ns"], call["stop_ns"]), (what, start, start + length))
        self.assertEqual(call["path"], [what])
        self.assertEqual(call["base_ns"] + sum(one[2] for one in call["callees"]), length)
        self.assertEqual(server.status("api/call", lane=lane, level=3, start=start + 1, stop=start + length), 404)

    @unittest.skipIf(NO_KERNEL, NO_KERNEL or "")
    def test_the_critical_path_is_that_of_the_report(self):
        server = self.serve()
        report = read_report(self.trace, "critical-path")
        ours = server.api("critical-path")
        self.assertEqual((ours["start_ns"], ours["wall_ns"]), (report["start_ns"], report["wall_ns"]))
        self.assertEqual(ours["critical_path"], report["critical_path"][:500])
        self.assertTrue(server.api("summary")["has_wake_ups"])
        middle = report["start_ns"] + report["wall_ns"] // 2
        part = server.api("critical-path", **{"from": report["start_ns"], "until": middle})
        self.assertEqual(part["wall_ns"], middle - report["start_ns"])

    def test_sources(self):
        server = self.serve()
        functions = [name for name, _ in server.api("summary")["functions"]]
        answer = server.api("source", function=functions.index("inner"))
        self.assertEqual(answer["file"], str(HERE / "view/program.c"))
        lines = (HERE / "view/program.c").read_text().split("\n")
        first = answer["first"] - 1
        self.assertEqual(answer["text"], lines[first:][:len(answer["text"])])
        self.assertIn("void inner(", answer["text"][answer["line"] - answer["first"]])
        huge = next(i for i, name in enumerate(functions) if name.startswith("n" * 1000))
        self.assertEqual(server.api("source", function=huge), {})  # an API name has no source
        self.assertEqual(server.status("api/source", function=len(functions)), 404)

    def test_bad_files(self):
        cut = self.directory / "cut"
        cut.write_bytes(self.trace.read_bytes()[:-100])
        for path, says in ((self.directory / "none", "none"), (cut, "--partial"), (self.directory, "")):
            done = subprocess.run([ARCTRACE, "view", "--no-open", path], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, check=False, timeout=SECONDS)
            self.assertEqual(done.returncode, STATUS_ERROR, path)
            self.assertEqual(done.stdout, "")
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(says, done.stderr)
        cut.unlink()  # what is left is checked
        server = self.serve()
        port = str(urllib.parse.urlsplit(server.url).port)
        for value, says in ((port, "cannot listen"), ("70000", "--port"), ("x", "--port")):
            done = subprocess.run([ARCTRACE, "view", "--no-open", "--port", value, self.trace], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, check=False, timeout=SECONDS)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (STATUS_ERROR, 1), done.stderr)
            self.assertIn(says, done.stderr)

    def test_html_file(self):
        path = self.directory / "trace.html"
        subprocess.run([ARCTRACE, "export", "--to=html", "-o", path, self.trace], check=True, timeout=SECONDS,
                       stderr=subprocess.DEVNULL)
        text = path.read_text()
        self.assertLess(len(text), 5_000_000)
        self.assertNotIn("owned", text)  # names are packed
        self.assertIn("script-src 'nonce-arctrace'", text)
        self.assertNotIn("src=\"page", text)


if __name__ == "__main__":
    unittest.main()
