"""The page of arctrace view: its server, what it says against the report, and the page itself in a browser;
and the file of export --to=html."""

import http.client
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import browser
import support
from test_kernel import NO_KERNEL
from trace_checks import ARCTRACE, SANITIZED, read_report

STATUS_ERROR = 2
SECONDS = 300  # for what hangs: a busy machine is slow
HOSTILE = "a\"b'\\<script>document.title='owned'</script><img src=x onerror=alert(1)>\x1b[2J\u202e\n\t end"

HERE = pathlib.Path(__file__).resolve().parent


def record_program(directory, turns=None, options=("--buffer-size=1G",)):
    """The trace of view/program.c, with the kernel's records where they can be had; or of many turns, without them and with
    these options."""
    program, trace = directory / "program", directory / "arctrace.data"
    subprocess.run(["gcc", "-O0", "-g", "-pthread", "-finstrument-functions", f"-I{HERE.parents[1] / 'include'}",
                    HERE / "view/program.c", "-o", program, support.LIBRARY, f"-Wl,-rpath,{support.LIBRARY.parent}"],
                   check=True)
    options = ["--kernel=no", *options] if turns else ["-a"] if NO_KERNEL else ["-a", "--kernel=bpf"]
    subprocess.run([ARCTRACE, "record", *options, "-o", trace, "--", program, HOSTILE, *([str(turns)] if turns else [])],
                   cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True)
    return trace


class Server:
    """arctrace view of a trace, until close()."""

    def __init__(self, trace):
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [ARCTRACE, "view", "--no-open", trace], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()

    def get(self, path, **values):
        query = "?" + urllib.parse.urlencode(values) if values else ""
        with urllib.request.urlopen(self.url + path + query, timeout=SECONDS) as answer:
            return answer.read()

    def api(self, name, **values):
        return json.loads(self.get("api/" + name, **values))

    def status(self, path, **values):
        try:
            self.get(path, **values)
        except urllib.error.HTTPError as error:
            with error:
                return error.code
        return 200

    def raw(self, path, host=None, method="GET"):
        """The status of a request for `path` with this Host."""
        place = urllib.parse.urlsplit(self.url)
        connection = http.client.HTTPConnection(place.hostname, place.port, timeout=SECONDS)
        connection.putrequest(method, path, skip_host=True)
        if host is not None:
            connection.putheader("Host", host)
        connection.endheaders()
        status = connection.getresponse().status
        connection.close()
        return status

    def close(self):
        self.process.send_signal(signal.SIGINT)
        _, errors = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, errors


def row_sums(answer):
    """Calls of the rows of a time line: exact ones, and those in crowds."""
    exact = crowded = 0
    for _, rows in answer["lanes"]:
        for level, stretches, crowds in rows:
            if level >= 3:
                exact += len(stretches) // 4
                crowded += sum(crowds[2::4])
    return exact, crowded


class ViewTest(support.TraceTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.recorded = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        cls.trace = record_program(pathlib.Path(cls.recorded.name))

    @classmethod
    def tearDownClass(cls):
        cls.recorded.cleanup()
        super().tearDownClass()

    def setUp(self):
        super().setUp()
        self.server = None

    def tearDown(self):
        if self.server is not None:
            self.server.close()
        super().tearDown()

    def serve(self):
        self.server = Server(self.trace)
        self.assertRegex(self.server.url, r"^http://127\.0\.0\.1:\d+/[0-9a-f]{32}/$")
        return self.server

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

    @unittest.skipIf(browser.CHROMIUM is None, "chromium is not installed")
    @unittest.skipIf(SANITIZED, "the other tests ask the same of the server")
    def test_in_a_browser(self):
        html = self.directory / "trace.html"
        subprocess.run([ARCTRACE, "export", "--to=html", "-o", html, self.trace], check=True, timeout=SECONDS,
                       stderr=subprocess.DEVNULL)
        with tempfile.TemporaryDirectory() as directory:
            cut = record_program(pathlib.Path(directory), 10_000, ("--buffer-size=1M", "--mode=overwrite"))
            gaps = self.directory / "gaps.html"
            subprocess.run([ARCTRACE, "export", "--to=html", "-o", gaps, cut], check=True, timeout=SECONDS,
                           stderr=subprocess.DEVNULL)
        server = self.serve()
        pictures = pathlib.Path(os.environ.get("ARCTRACE_PICTURES", self.directory))
        with tempfile.TemporaryDirectory() as directory:
            page = browser.Browser(directory)
            try:
                self.walk(page, server.url, pictures, served=True)
                self.walk(page, html.as_uri(), pictures, served=False)
                self.hatching(page, html.as_uri(), gaps.as_uri(), pictures)
            finally:
                page.close()

    def walk(self, page, url, pictures, served):
        """Through all of the page, without an error."""
        name = "served" if served else "file"
        state = "arctracePage.state"
        page.open(url)
        page.wait("arctracePage.timeLine.parts.size > 0")
        self.assertNotEqual(page.run("document.title"), "owned")
        self.assertEqual(page.run("document.querySelectorAll('script').length"), 1 if served else 2)
        self.assertEqual(page.run("document.querySelectorAll('#app img').length"), 0)
        for tab, sign in (("functions", "table tbody tr"), ("flame", "canvas"), ("locks", "table tbody tr"),
                          ("critical", "p" if NO_KERNEL else "table tbody tr"), ("chosen", "p"), ("summary", "table")):
            page.run(f"document.getElementById('tab-{tab}').click()")
            page.wait(f"document.querySelector('#pane {sign}')")
            page.wait("!document.querySelector('#pane').textContent.includes('reading…')")
            page.screenshot(pictures / f"{name}-{tab}.png")
        self.sort(page)
        self.keyboard(page, state)
        self.flame(page)
        page.key("t")
        page.wait("document.documentElement.dataset.theme === 'dark'")
        page.screenshot(pictures / f"{name}-dark.png")
        page.key("t")
        page.wait("document.documentElement.dataset.theme === 'light'")
        self.search(page, state)
        page.screenshot(pictures / f"{name}-chosen.png")
        if served:
            page.key("r")
            page.wait(f"{state}.range !== null")
        self.address(page, url, state)
        self.assertEqual(page.problems, [])

    def hatching(self, page, without, url, pictures):
        """Of a ring of which the newest records are left: what is before is hatched, and says why."""
        page.open(without)
        page.wait("arctracePage.timeLine.isShown")
        page.wait(HATCHED + " === 0")
        page.open(url)
        page.wait("arctracePage.timeLine.isShown")
        page.run("(() => { const gap = " + LONGEST_GAP + "; arctracePage.timeLine.look(gap.from_ns, gap.to_ns); })()")
        page.wait(HATCHED + " > 200")
        page.screenshot(pictures / "gaps.png")
        self.assertIn("overwritten", page.run(GAP_TIP))
        self.assertEqual(page.problems, [])

    def sort(self, page):
        page.run("document.getElementById('tab-functions').click()")
        page.wait("document.querySelector('th[aria-sort=descending]')")
        first = "document.querySelector('#pane tbody tr td.name').textContent"
        for column in ("calls", "function"):
            click = f"[...document.querySelectorAll('#pane th button')].find((one) => one.textContent === '{column}').click()"
            page.run(click)
            before = page.run(first)
            page.run(click)
            self.assertNotEqual(page.run(first), before, column)

    def keyboard(self, page, state):
        page.run("arctracePage.timeLine.canvas.focus()")
        width = f"{state}.view.until - {state}.view.from"
        before = page.run(width)
        page.key("w")
        self.assertLess(page.run(width), before)
        start = page.run(f"{state}.view.from")
        page.key("d")
        self.assertGreater(page.run(f"{state}.view.from"), start)
        page.key("s")
        page.key("0")
        page.key("ArrowDown")
        page.wait(f"{state}.call !== null")
        page.key("ArrowDown")
        page.wait(f"{state}.call.level === 4")
        page.key("Enter")
        shown = f"Math.min(3 * ({state}.call.stop - {state}.call.start), 1.2 * {before} + 20)"
        page.wait(f"Math.abs({width} - {shown}) < 1")
        page.key("ArrowUp")
        page.wait(f"{state}.call.level === 3")
        page.wait("document.querySelector('#pane dl')")
        page.key("?")
        page.wait("document.querySelector('dialog[open]')")
        page.key("Escape")
        page.wait("!document.querySelector('dialog[open]')")
        page.key("0")

    def flame(self, page):
        page.run("document.getElementById('tab-flame').click()")
        page.wait("arctracePage.flame.boxes && arctracePage.flame.boxes.length > 3")
        page.run("arctracePage.flame.zoomTo(arctracePage.flame.root.children[0])")
        page.wait("document.querySelectorAll('.crumbs button').length >= 2")
        for change in ("weight: 'count'", "inverted: true", "inverted: false", "per: 'thread'"):
            name, value = change.split(": ")
            if name == "inverted":
                page.run("document.querySelector('.bar input[type=checkbox]').click()")
            else:
                page.run(f"(() => {{ const select = [...document.querySelectorAll('.bar select')].find((one) =>"
                         f" [...one.options].some((option) => option.value === {value})); select.value = {value};"
                         " select.dispatchEvent(new Event('change')); })()")
            page.wait("arctracePage.flame.root.total > 0")
        page.run("(() => { const input = document.querySelector('.bar input[type=search]'); input.value = 'inner';"
                 " input.dispatchEvent(new Event('input')); })()")
        page.wait("arctracePage.flame.matches && arctracePage.flame.matches.size > 0")
        page.wait("document.querySelector('.bar [role=status]').textContent.includes('%')")
        page.run("document.getElementById('tab-summary').click()")

    def search(self, page, state):
        page.run("document.body.focus(); document.activeElement.blur()")
        page.key("/")
        page.wait("document.activeElement.type === 'search'")
        for letter in "script":
            page.key(letter)
        page.wait("document.querySelectorAll('.found li').length > 0")
        page.key("Enter")
        page.wait(f"{state}.func !== null && {state}.tab === 'chosen'")
        page.wait("document.querySelector('.histogram')")
        page.run("document.activeElement.blur()")

    def address(self, page, url, state):
        """The address brings back what is seen."""
        page.run("arctracePage.timeLine.zoom(0.3)")
        page.wait("location.hash.includes('view=')")
        address = page.run("location.href")
        view = page.run(f"Math.floor({state}.view.from)")
        page.call("Page.navigate", url="about:blank")
        page.wait("location.href === 'about:blank'")
        self.assertTrue(address.startswith(url))
        page.open(address)
        self.assertEqual(page.run(f"Math.floor({state}.view.from)"), view)
        self.assertEqual(page.run(f"{state}.tab"), "chosen")


# Pixels of the time line in the light theme's colour for gaps, which no call and no state has.
HATCHED = """(() => {
  const { canvas } = arctracePage.timeLine;
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
  let found = 0;
  for (let i = 0; i < data.length; i += 4) if (data[i] > 165 && data[i + 1] < 125 && data[i + 2] < 125) ++found;
  return found;
})()"""

# Of threads that have a lane: some have no record left.
LONGEST_GAP = """arctracePage.facts.gaps
  .filter((gap) => gap.from_ns !== null && arctracePage.facts.lanes.some((lane) => lane.tid === gap.tid))
  .sort((a, b) => b.to_ns - b.from_ns - (a.to_ns - a.from_ns))[0]"""

# What the pointer is told in the middle of that gap, at the edge of its thread's lane.
GAP_TIP = f"""(() => {{
  const {{ timeLine, facts }} = arctracePage, gap = {LONGEST_GAP};
  const lane = timeLine.visible().find(({{ index }}) => facts.lanes[index].tid === gap.tid);
  return timeLine.tipOf(timeLine.at(timeLine.xOf((gap.from_ns + gap.to_ns) / 2), lane.y + 1));
}})()"""

# Pans by 7 pixels in each frame; the times between frames and of painting, sorted, in ms.
PAN = """(async () => {
  const timeLine = arctracePage.timeLine, between = [];
  timeLine.frames.length = 0;
  let last = await new Promise(requestAnimationFrame);
  for (let i = 0; i < 150; ++i) {
    timeLine.pan(i % 60 < 30 ? 7 : -7);
    const now = await new Promise(requestAnimationFrame);
    between.push(now - last);
    last = now;
  }
  return [between, timeLine.frames].map((list) => list.slice().sort((a, b) => a - b));
})()"""


@unittest.skipUnless(os.environ.get("ARCTRACE_TEST_LONG"), "ARCTRACE_TEST_LONG is not set")
class LargeTest(support.TraceTest):
    """Ten million calls."""

    TURNS = 310_000

    def test_ten_million_calls(self):
        trace = record_program(self.directory, self.TURNS)
        calls = sum(row["calls"] for row in read_report(trace, "flat")["functions"])
        html = self.directory / "trace.html"
        begin = time.monotonic()
        subprocess.run([ARCTRACE, "export", "--to=html", "-o", html, trace], check=True, stderr=subprocess.DEVNULL)
        print(f"{calls} calls, {trace.stat().st_size} bytes; html: {html.stat().st_size} bytes in {time.monotonic() - begin:.1f} s")
        self.assertLessEqual(html.stat().st_size, 5_000_000)
        begin = time.monotonic()
        server = Server(trace)
        print(f"served after {time.monotonic() - begin:.1f} s")
        try:
            self.reaches_each_call(server)
            if browser.CHROMIUM is not None:
                with tempfile.TemporaryDirectory() as directory:
                    page = browser.Browser(directory)
                    try:
                        self.measure(page, "served", server.url)
                        self.measure(page, "file", html.as_uri())
                    finally:
                        page.close()
        finally:
            status, errors = server.close()
        self.assertEqual(status, 0, errors)
        trace.unlink()  # too large for what is looked at in each trace

    def reaches_each_call(self, server):
        """A stretch of 200 us has all its calls, one by one, although all of the trace together has crowds."""
        summary = server.api("summary")
        lane = max(range(len(summary["lanes"])), key=lambda i: summary["lanes"][i]["calls"])
        begin = self.busiest(server, lane, summary["from_ns"], summary["until_ns"])
        values = {"pixel": 1, "lanes": lane, "from": begin, "until": begin + 200_000}
        self.assertGreater(row_sums(server.api("timeline", **values))[1], 0)
        begin = time.monotonic()
        answer = server.api("timeline", exact=1, **values)
        print(f"read again in {time.monotonic() - begin:.1f} s")
        exact, crowded = row_sums(answer)
        self.assertGreater(exact, 1000)
        self.assertEqual(crowded, 0)

    def busiest(self, server, lane, begin, end):
        """The 200 us of a lane that have most of its short calls: beside other work a thread may be without a CPU for long."""
        answer = server.api("timeline", pixel=200_000, lanes=lane, **{"from": begin, "until": end})
        most = (0, begin)
        for _, _, crowds in answer["lanes"][0][1]:
            at = answer["from_ns"]
            for i in range(0, len(crowds), 4):
                at += crowds[i]
                most = max(most, (crowds[i + 2], at))
        return most[1]

    def measure(self, page, name, url):
        page.open(url)
        page.wait("performance.getEntriesByName('time line').length > 0")
        shown = page.run("performance.getEntriesByName('time line')[0].startTime")
        page.run("arctracePage.timeLine.zoom(0.5)")
        page.wait("!arctracePage.timeLine.asking")
        between, painting = page.run(PAN)
        print(f"{name}: time line after {shown:.0f} ms; panning: median {between[75]:.1f} ms a frame, {painting[len(painting) // 2]:.1f} ms"
              f" of it painting, 95 % below {between[142]:.1f} ms")
        self.assertEqual(page.problems, [])


if __name__ == "__main__":
    unittest.main()
