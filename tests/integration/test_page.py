"""The page of arctrace view, served and as the file of export --to=html, in a headless Chromium."""

import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import unittest

import browser
import cases
import serving_programs
import states
from command import read, read_report, run, start_arctrace
from kernel_programs import SOURCES
from served_trace import SECONDS, ServedTest, Server, record_program, row_sums
from test_kernel import NO_KERNEL
from tracing import TracedTest


SHORT_NAMES = {
    "main": "main",
    "f(int)": "f",
    "(anonymous namespace)::f(int)": "(anonymous namespace)::f",
    "void (anonymous namespace)::function<0ul>(unsigned int)": "(anonymous namespace)::function<0ul>",
    "std::vector<int, std::allocator<int> > make<int>(int, char const*)": "make<int>",
    "void f<(char)40>(int)": "f<(char)40>",
    "decltype (x->y) g<A>(A)": "g<A>",
    "int (*get<int>(int))(char)": "int (*get<int>(int))(char)",
    "A::~A()": "A::~A",
    "A::f() const &": "A::f",
    "A::operator()(int) const": "A::operator()",
    "A::operator->() const": "A::operator->",
    "A::operator bool() const": "A::operator bool",
    "operator new(unsigned long)": "operator new",
    "bool operator< <int>(A<int> const&, A<int> const&)": "operator< <int>",
    "std::ostream& std::operator<< <std::char_traits<char> >(std::ostream&, char const*)": "std::operator<< <std::char_traits<char> >",
    "int* cooperator::f<int>(int)": "cooperator::f<int>",
    "std::function<void (int)>::operator()(int) const": "std::function<void (int)>::operator()",
    "auto main::{lambda(auto:1)#1}::operator()<int>(int) const": "main::{lambda(auto:1)#1}::operator()<int>",
    "non-virtual thunk to A::f()": "non-virtual thunk to A::f",
    "foo(int) [clone .part.0]": "foo [clone .part.0]",
    "void A<int>::insert<int>(int&&) [clone .isra.0]": "A<int>::insert<int> [clone .isra.0]",
    "operator()": "operator()",
    "[thread]": "[thread]",
    "git (deleted)": "git (deleted)",
    "f)": "f)",
    "()": "()",
    "": "",
}


# What the summary shows in the report's words, the function with the most time, and the largest share of the time.
SHOWN = """(() => {
  const textOf = (place) => { const found = document.querySelector(place); return found ? found.textContent : null; };
  const sections = [...document.querySelectorAll('#pane section')];
  const section = (head) => sections.find((one) => one.firstChild.textContent.startsWith(head));
  return { head: textOf('header .facts'), said: [...document.querySelectorAll('#pane div.said p')].map((one) => one.textContent),
           crash: textOf('#pane .crash'), serving: textOf('#pane .serving'),
           hottest: section('Hottest functions').querySelector('tbody td.name').firstChild.textContent,
           share: section('What the time of all').querySelectorAll('tbody td')[1].textContent };
})()"""


@unittest.skipIf(browser.CHROMIUM is None, "chromium is not installed")
class PageTest(ServedTest):
    def test_in_a_browser(self):
        html = self.directory / "trace.html"
        read("export", "--to=html", "-o", html, self.trace, timeout=SECONDS)
        with tempfile.TemporaryDirectory() as directory:
            cut = record_program(pathlib.Path(directory), 10_000, ("--buffer-size=1M", "--mode=overwrite"))
            gaps = self.directory / "gaps.html"
            read("export", "--to=html", "-o", gaps, cut, timeout=SECONDS)
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

    def test_flame_graph_says_what_was_left_out(self):
        """A function of which calls were left out says so in its box, in the tip at the pointer, and below the bar."""
        program = self.directory / "nested"
        run("gcc", "-O0", "-finstrument-functions", "-x", "c", "-", "-o", program, check=True, input=(
            "static void leaf(void) {} static void outer(void) { leaf(); }"
            "int main(void) { for (int i = 0; i < 50; ++i) outer(); return 0; }"))
        trace = self.record(program, options=("--no-libcall", "-D", "2")).trace
        with tempfile.TemporaryDirectory() as directory:
            page = browser.Browser(directory)
            server = Server(trace)
            try:
                server.wait_whole()
                page.open(server.url)
                page.wait("document.getElementById('tab-flame')")
                page.run("document.getElementById('tab-flame').click()")
                page.wait("arctracePage.flame.boxes && arctracePage.flame.boxes.length > 2")
                tips = page.run("arctracePage.flame.boxes.map(([node]) => arctracePage.flame.tipOf(node))")
                self.assertTrue(any(tip.startswith("outer [partly]") for tip in tips), tips)
                self.assertIn("calls were left out", page.run("document.querySelector('#pane').textContent"))
                self.assertEqual(page.problems, [])
            finally:
                page.close()
                server.close()

    def test_names_of_functions_are_shortened(self):
        """Names are shown without parameters and results; one that is not a function's name as C++ writes it is not
        changed."""
        script = (pathlib.Path(__file__).resolve().parents[2] / "reader/ui/page/format.js").read_text()
        with tempfile.TemporaryDirectory() as directory:
            page = browser.Browser(directory)
            try:
                found = page.run(f"(() => {{ {script}\n return {json.dumps(list(SHORT_NAMES))}.map(shortName); }})()")
            finally:
                page.close()
        self.assertEqual(dict(zip(SHORT_NAMES, found)), SHORT_NAMES)

    def test_whole_names(self):
        """A function's whole name stands in its details; a button, or a key, shows whole names everywhere, and the
        address keeps that."""
        program = self.directory / "templates"
        run("g++", "-O0", "-finstrument-functions", "-x", "c++", "-", "-o", program, check=True, input=(
            "template <class T> long slow_sort(T n) { return n > 0 ? slow_sort<T>(n - 1) + 1 : 0; }"
            "int main() { return slow_sort<long>(20) != 20; }"))
        trace = self.record(program, options=("--no-libcall",)).trace
        html = self.directory / "templates.html"
        read("export", "--to=html", "-o", html, trace, timeout=SECONDS)
        whole = "long slow_sort<long>(long)"
        with tempfile.TemporaryDirectory() as directory:
            page = browser.Browser(directory)
            server = Server(trace)
            try:
                server.wait_whole()
                for url in (server.url, html.as_uri()):
                    page.call("Page.navigate", url="about:blank")
                    page.wait("location.href === 'about:blank'")
                    page.open(url + "#tab=details&function=slow_sort")
                    page.wait("document.querySelector('#pane h2')")
                    shown = "document.querySelector('#pane h2')?.textContent"
                    self.assertEqual(page.run(shown), "slow_sort")
                    self.assertIn(whole, page.run("document.querySelector('#pane dl').textContent"))
                    page.key("n")
                    page.wait(f"{shown} === '{whole}'")
                    page.wait("location.hash.includes('names=whole') && location.hash.includes('function=slow_sort')")
                    page.run("window.isOld = true; location.reload()")
                    page.wait(f"!window.isOld && {shown} === '{whole}'")
                    page.run("document.getElementById('names').click()")
                    page.wait(f"{shown} === 'slow_sort'")
                whole_server = Server("--full-names", trace)
                self.addCleanup(whole_server.close)
                page.open(whole_server.url)
                page.wait("document.getElementById('names')?.ariaPressed === 'true'")
                self.assertEqual(page.problems, [])
            finally:
                page.close()
                server.close()

    def test_numbers_and_times(self):
        """Nothing is "0"; what is not known is "-"; microseconds have their sign."""
        script = (pathlib.Path(__file__).resolve().parents[2] / "reader/ui/page/format.js").read_text()
        shown = {
            "count(0)": "0", "count(null)": "-", "count(undefined)": "-", "count(12345)": "12,345",
            "duration(0)": "0", "duration(null)": "-", "duration(7)": "7 ns", "duration(1500)": "1.50 µs",
            "share(0, 10)": "0", "share(null, 10)": "-", "share(1, 0)": "-", "share(1, 10)": "10 %", "share(1, 1e6)": "< 0.1 %",
            "moment(2500, 1)": "2.500 µs", "micro('[until 12.0 us] of usr')": "[until 12.0 µs] of usr",
        }
        with tempfile.TemporaryDirectory() as directory:
            page = browser.Browser(directory)
            try:
                found = page.run(f"(() => {{ {script}\n return [{', '.join(shown)}]; }})()")
            finally:
                page.close()
        self.assertEqual(dict(zip(shown, found)), shown)

    def test_slow_calls_and_deep_lanes(self):
        """From the table of functions one gets to a slow call among many short ones; a deep lane is folded until
        somebody unfolds it; a tip has thread, arguments and share of the CPU."""
        program = self.directory / "deep"
        run("gcc", "-O0", "-finstrument-functions", "-x", "c", "-", "-o", program, check=True, input="""
            #include <unistd.h>
            static void deep(int levels) { if (levels > 0) deep(levels - 1); }
            static void request(int turn) { if (turn == 77) usleep(201000); }
            int main(void) { deep(30); for (int i = 0; i < 200; ++i) request(i); return 0; }""")
        trace = self.record(program, options=("-a", *([] if NO_KERNEL else ["--kernel=bpf"]))).trace
        html = self.directory / "deep.html"
        read("export", "--to=html", "-o", html, trace, timeout=SECONDS)
        with tempfile.TemporaryDirectory() as directory:
            page = browser.Browser(directory)
            self.server = Server(trace)
            try:
                self.server.wait_whole()
                for url in (self.server.url, html.as_uri()):
                    self.slow_call(page, url)
                    self.tip(page, "(201000)" if url == self.server.url else None)
                    self.deep_lane(page)
                self.assertEqual(page.problems, [])
            finally:
                page.close()

    def slow_call(self, page, url):
        page.call("Page.navigate", url="about:blank")
        page.wait("location.href === 'about:blank'")
        page.open(url + "#tab=functions&sort=calls")
        page.wait("document.querySelector('#pane tbody tr')")
        page.run("[...document.querySelectorAll('#pane tbody tr')].find((row) => row.lastChild.firstChild.textContent === 'request').click()")
        page.wait("document.querySelector('#pane .slowest tbody tr')")
        self.assertRegex(page.run("document.querySelector('#pane .slowest tbody tr').textContent"), r"^20\d ms.*deep \d+/\d+$")
        page.run("document.querySelector('#pane .slowest tbody tr').click()")
        call = page.run("arctracePage.state.call")
        self.assertGreater(call["stop"] - call["start"], 201e6)
        page.wait(f"arctracePage.state.view.from < {call['start']} && arctracePage.state.view.until > {call['stop']}")

    def tip(self, page, args):
        """That of the call of usleep within the slow one."""
        page.wait(f"{USLEEP} !== undefined")
        page.run(f"arctracePage.timeLine.pointAt({USLEEP}, 300, 100)")
        tip = "document.querySelector('.tip').textContent"
        if args is not None:
            page.wait(f"{tip}.includes('{args}')")
        self.assertRegex(page.run(tip), r"(?s)^usleep\n.*20\d ms.*\nthread deep \d+/\d+$")
        if not NO_KERNEL:
            self.assertRegex(page.run(tip), "on the CPU (0|< 0.1 %|[0-9.]+ %)")
            # The bar of `main` is paler where the thread is blocked, in the same colour.
            end = page.run(END_OF_WAIT)
            page.run(f"arctracePage.timeLine.look({end} - 1e5, {end} + 1e5)")
            page.wait(f"!arctracePage.timeLine.asking && {USLEEP} !== undefined")
            pale, full = page.run(f"[{end} - 5e4, {end} + 1e3].map((ns) => ({MAIN_PIXEL})(ns))")
            self.assertTrue(all(a >= b for a, b in zip(pale, full)) and sum(pale) > sum(full) + 60, (pale, full))
        # A function that waits is nearly grey.
        waits = page.run(f"({MAIN_PIXEL})({USLEEP}.stop - 1e3, {USLEEP}.level)")
        self.assertLess(max(waits) - min(waits), 30)
        page.run("arctracePage.timeLine.pointAt(null)")

    def deep_lane(self, page):
        lane = "arctracePage.facts.lanes[arctracePage.timeLine.order[0]]"
        rows = f"arctracePage.timeLine.shownRows({lane})"
        page.key("Escape")
        page.key("0")
        self.assertEqual(page.run(rows), 8)
        self.assertGreater(page.run(f"arctracePage.timeLine.deeperRows({lane})"), 20)
        for action in (lambda: page.click(*page.run(DEEPER)), lambda: page.run("document.getElementById('depth').click()")):
            action()
            self.assertGreater(page.run(rows), 30)
            page.run(f"{lane}.isDeep = false")
        page.key("e")
        self.assertEqual(page.run(rows), 8)

    def test_a_range_is_chosen(self):
        """The page shows at once that it reads, instead of what it showed of another time; then it shows the sums of
        the range, in the same tab."""
        server = self.serve()
        summary = server.api("summary")
        quarter = (summary["until_ns"] - summary["from_ns"]) // 4
        with tempfile.TemporaryDirectory() as directory:
            page = browser.Browser(directory)
            try:
                for number, tab in enumerate(("summary", "flame", "functions", "locks")):
                    begin = summary["from_ns"] + quarter + number
                    page.call("Page.navigate", url="about:blank")
                    page.wait("location.href === 'about:blank'")
                    page.open(f"{server.url}#tab={tab}")
                    page.wait("!document.querySelector('#pane[aria-busy]')")
                    whole = page.run(f"document.querySelector('{READ[tab]}').textContent")
                    self.assertEqual(page.run(f"(() => {{ arctracePage.change({{ range: {{ from: {begin}, until: {begin + 2 * quarter} }} }});"
                                              f" return {SAYS_THAT_IT_READS}; }})()"), ["reading…", "true", False])
                    page.wait("!document.querySelector('#pane[aria-busy]')")
                    page.wait("document.getElementById('busy').hidden")
                    self.assertEqual(page.run("arctracePage.state.tab"), tab)
                    if tab != "locks":  # which may have no wait that differs
                        self.assertNotEqual(page.run(f"document.querySelector('{READ[tab]}').textContent"), whole)
                # Two ranges at once: the one that was chosen last is shown.
                page.run("document.getElementById('tab-functions').click()")
                for begin in (summary["from_ns"] + 2 * quarter, summary["from_ns"] + 100):
                    page.run(f"void arctracePage.change({{ range: {{ from: {begin}, until: {begin + quarter} }} }})")
                page.wait("!document.querySelector('#pane[aria-busy]')")
                rows = server.api("totals", **{"from": begin, "until": begin + quarter})["totals"]
                self.assertIn(f"{len(rows)} functions", page.run("document.querySelector('#pane .bar').textContent"))
                self.call_beyond_a_range(page, server)
                self.drag_in_summary(page)
                self.assertEqual(page.problems, [])
            finally:
                page.close()

    def call_beyond_a_range(self, page, server):
        """The slowest call of a range goes on beyond it: one gets to the whole call."""
        names = [name for name, *_ in server.api("summary")["functions"]]
        work = names.index("work")
        _, _, start, stop, *_ = server.api("slowest", function=work)["slowest"][0]
        quarter = (stop - start) // 4
        page.run(f"void arctracePage.change({{ range: {{ from: {start + quarter}, until: {stop - quarter} }}, func: {work}, tab: 'details' }})")
        page.wait("document.querySelector('#pane .slowest tbody tr')")
        self.assertIn("at least", page.run("document.querySelector('#pane .slowest tbody tr').textContent"))
        page.run("document.querySelector('#pane .slowest tbody tr').click()")
        page.wait(f"arctracePage.state.call && arctracePage.state.call.start < {start + quarter} && arctracePage.state.call.stop > {stop - quarter}")
        page.wait("document.querySelector('#pane').textContent.includes('What it called')")

    def drag_in_summary(self, page):
        """A range that is dragged while the summary is shown is one of the summary."""
        page.run("document.getElementById('tab-summary').click()")
        page.key("Escape")
        page.wait("arctracePage.state.range === null && !document.querySelector('#pane[aria-busy]')")
        x, y = page.run("(() => { const box = arctracePage.timeLine.canvas.getBoundingClientRect(); return [box.left + 300, box.top + 60]; })()")
        page.mouse("mousePressed", x, y, button="left", clickCount=1, modifiers=SHIFT)
        for moved in (60, 200):
            page.mouse("mouseMoved", x + moved, y, button="left", buttons=1, modifiers=SHIFT)
        page.mouse("mouseReleased", x + 200, y, button="left", clickCount=1, modifiers=SHIFT)
        page.wait("arctracePage.state.range !== null")
        page.wait("!document.querySelector('#pane[aria-busy]')")
        self.assertEqual(page.run("arctracePage.state.tab"), "summary")

    def walk(self, page, url, pictures, served):
        """Goes through all of the page, without an error."""
        name = "served" if served else "file"
        state = "arctracePage.state"
        page.open(url)
        page.wait("arctracePage.timeLine.parts.size > 0")
        self.assertNotEqual(page.run("document.title"), "owned")
        self.assertEqual(page.run("document.querySelectorAll('script').length"), 1 if served else 2)
        self.assertEqual(page.run("document.querySelectorAll('#app img').length"), 0)
        self.assertEqual(page.run(f"{state}.weight"), "wall" if NO_KERNEL else "cpu")
        legend = page.run("document.querySelector('.legend').textContent")
        self.assertIn("too short to be drawn", legend)
        self.assertEqual("on the CPU" in legend, not NO_KERNEL)
        for tab, sign in (("functions", "table tbody tr"), ("flame", "canvas"), ("locks", "table tbody tr"),
                          ("critical", "p" if NO_KERNEL else "table tbody tr"), ("details", "p"), ("summary", "table")):
            page.run(f"document.getElementById('tab-{tab}').click()")
            page.wait(f"document.querySelector('#pane {sign}')")
            page.wait("!document.querySelector('#pane').textContent.includes('reading…')")
            page.screenshot(pictures / f"{name}-{tab}.png")
        self.lanes(page)
        self.processes(page)
        if not NO_KERNEL:
            self.path(page)
        self.narrow(page)
        self.sort(page)
        self.keyboard(page, state)
        self.flame(page)
        page.key("t")
        page.wait("document.documentElement.dataset.theme === 'dark'")
        page.screenshot(pictures / f"{name}-dark.png")
        page.key("t")
        page.wait("document.documentElement.dataset.theme === 'light'")
        self.search(page, state)
        page.screenshot(pictures / f"{name}-details.png")
        if served:
            page.key("r")
            page.wait(f"{state}.range !== null")
        self.address(page, url, state)
        self.assertEqual(page.problems, [])

    def lanes(self, page):
        """The lanes that worked most come first, and begin with the parts of their process' life."""
        work = page.run("arctracePage.timeLine.order.map((index) => arctracePage.facts.lanes[index])"
                        f".map((lane) => lane.{'work_ns' if NO_KERNEL else 'cpu_ns'})")
        self.assertEqual(work, sorted(work, reverse=True))
        self.assertGreater(work[0], 0)
        tip = page.run(LOADER_TIP)
        self.assertRegex(tip, r"^\[loader\]\n.* [mµn]?s\nprogram \d+/\d+$")

    def processes(self, page):
        """The summary has the tree of processes, which leads to their lanes."""
        page.run("document.getElementById('tab-summary').click()")
        page.wait("!document.querySelector('#pane[aria-busy]')")
        row = ("[...document.querySelectorAll('#pane section')].find((one) => one.firstChild.textContent === 'Processes')"
               ".querySelectorAll('tbody tr')[1]")
        self.assertRegex(page.run(f"{row}.textContent"), r"^[\d.]+ [mµ]?s.*/program .*\d+$")
        page.run("arctracePage.timeLine.setScroll(1e6)")
        page.run("document.activeElement.blur()")
        page.run(f"{row}.click()")
        self.assertEqual(page.run("document.activeElement.tagName"), "CANVAS")
        pid = page.run(f"{row}.querySelector('.module').textContent")
        self.assertTrue(page.run("arctracePage.timeLine.visible().some(({ index }) =>"
                                 f" arctracePage.facts.lanes[index].pid === {pid})"))

    def path(self, page):
        """The critical path is drawn, and hidden on request; its rows lead to their place; the summary tells of it."""
        page.wait("arctracePage.critical.key !== null")
        page.wait(PATH_PIXELS + " > 300")
        page.key("p")
        page.wait(PATH_PIXELS + " === 0")
        page.key("p")
        self.assertRegex(page.run("document.querySelector('#pane').textContent"), "What the .* depended on.*in all: ")
        page.run("document.getElementById('tab-critical').click()")
        page.wait("document.querySelector('#pane tbody tr[tabindex]')")
        page.run("document.querySelector('#pane tbody tr[tabindex]').click()")
        row = page.run("arctracePage.critical.answer.critical_path.find((one) => one.lane !== null)")
        self.assertEqual(page.run("[arctracePage.timeLine.spot.lane, arctracePage.timeLine.spot.from]"), [row["lane"], row["at_ns"]])
        page.wait(f"arctracePage.state.view.from <= {row['at_ns']} && arctracePage.state.view.until >= {row['until_ns']}")
        self.assertTrue(page.run(f"arctracePage.timeLine.visible().some(({{ index }}) => index === {row['lane']})"))
        page.key("Escape")
        page.key("0")
        page.run("document.getElementById('tab-summary').click()")

    def narrow(self, page):
        """The page is as narrow as on a telephone: nothing is cut at the edge, neither the facts, which have losses
        last, nor a tab."""
        page.call("Emulation.setDeviceMetricsOverride", width=420, height=800, deviceScaleFactor=1, mobile=False)
        page.wait("innerWidth === 420")
        for tab in ("functions", "flame", "locks", "critical", "details", "summary"):
            page.run(f"document.getElementById('tab-{tab}').click()")
            page.wait("!document.querySelector('#pane').textContent.includes('reading…')")
            self.assertEqual(page.run(CUT_OFF), [], tab)
        page.call("Emulation.clearDeviceMetricsOverride")
        page.wait("innerWidth > 1000")

    def hatching(self, page, without, url, pictures):
        """A ring has only the newest records: the time before them is hatched, and says why."""
        page.open(without)
        page.wait("arctracePage.timeLine.isShown")
        page.wait(HATCHED + " === 0")
        page.open(url)
        page.wait("arctracePage.timeLine.isShown")
        page.run("(() => { const gap = " + LONGEST_GAP + "; arctracePage.timeLine.look(gap.from_ns, gap.to_ns); })()")
        page.wait(HATCHED + " > 200")
        page.screenshot(pictures / "gaps.png")
        lost = page.run("document.querySelector('header .hot').textContent")
        self.assertRegex(lost, r"\d,\d{3} overwritten")
        self.assertNotRegex(lost, r"\d{4}")
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
        # A key does nothing where the visible range has not been read yet.
        page.wait("!arctracePage.timeLine.asking && arctracePage.timeLine.visible().some(({ index }) =>"
                  " arctracePage.timeLine.dataOf(index)?.rows.some((row) => row.level === 4 && row.start.length > 0))")
        page.key("ArrowDown")
        page.wait(f"{state}.call !== null")
        page.key("ArrowDown")
        page.wait(f"{state}.call.level === 5")
        page.key("Enter")
        shown = f"Math.min(3 * ({state}.call.stop - {state}.call.start), 1.2 * {before} + 20)"
        page.wait(f"Math.abs({width} - {shown}) < 1")
        page.key("ArrowUp")
        page.wait(f"{state}.call.level === 4")
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
            page.wait("!document.querySelector('#pane[aria-busy]') && arctracePage.flame.root.total > 0")
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
        page.wait(f"{state}.func !== null && {state}.tab === 'details'")
        page.wait("document.querySelector('.histogram')")
        page.run("document.activeElement.blur()")

    def address(self, page, url, state):
        """The address restores the view."""
        page.run("arctracePage.timeLine.zoom(0.3)")
        # The address follows after a while.
        page.wait(f"location.hash.includes('view=' + Math.floor({state}.view.from))")
        address = page.run("location.href")
        view = page.run(f"Math.floor({state}.view.from)")
        page.call("Page.navigate", url="about:blank")
        page.wait("location.href === 'about:blank'")
        self.assertTrue(address.startswith(url))
        page.open(address)
        self.assertEqual(page.run(f"Math.floor({state}.view.from)"), view)
        self.assertEqual(page.run(f"{state}.tab"), "details")


@unittest.skipIf(browser.CHROMIUM is None, "chromium is not installed")
class SummaryTest(TracedTest):
    """The page's summary says what that of arctrace report says, served and as a file."""

    def shown(self, trace):
        """What the summary shows: of the page that is served, and of the one that is a file."""
        html = self.directory / "trace.html"
        read("export", "--to=html", "-o", html, trace, timeout=SECONDS)
        server = Server(trace)
        self.addCleanup(server.close)
        server.wait_whole()
        with tempfile.TemporaryDirectory() as directory:
            page = browser.Browser(directory)
            try:
                for url in (server.url, html.as_uri()):
                    page.open(url)
                    page.wait("document.querySelector('#pane .said') && !document.querySelector('#pane[aria-busy]')")
                    yield page.run(SHOWN)
                    self.assertEqual(page.problems, [])
            finally:
                page.close()

    def section(self, text, head):
        """The lines of a section of the report, with its head."""
        (found,) = [section for section in text.split("\n\n") if section.split("\n")[0].endswith(head)]
        return found.strip("\n")

    def test_a_crash(self):
        """What recording cost, arctrace's own time, where the crash was, and one process although it executes
        another program."""
        program = self.directory / "crash"
        run("gcc", "-O0", "-x", "c", "-", "-o", program, check=True, input=(
            "#include <string.h>\n"
            "int nowhere(const char* at) { return strlen(at); } int main(int count, char** arguments) {"
            " return nowhere(count > 5 ? arguments[0] : 0); }"))
        done = self.record("bash", "-c", f"ulimit -c 0; exec {program}", options=("-P", "."))
        text = read("report", done.trace)
        head, crash, *_ = text.split("\n\n")
        crash = "".join(crash.splitlines(keepends=True)[:4])  # the report may cut the others
        self.assertIn(", 1 process, 1 thread\n", head)
        self.assertIn("in no sum", head)
        self.assertRegex(crash, r"\n  likely thread crash \d+/\d+: main > nowhere(\n| >)")
        for page in self.shown(done.trace):
            self.assertIn(" · 1 process · 1 thread", page["head"])
            said = [line.replace(" us", " µs") for line in head.split("\n")]
            self.assertEqual(said[-len(page["said"]):], page["said"])
            self.assertTrue(any("in no sum" in line for line in page["said"]), page)
            self.assertEqual(page["crash"].replace(" µs", " us")[:len(crash) - 1], crash.replace("\n", "", 1))

    @unittest.skipIf(NO_KERNEL, NO_KERNEL or "")
    def test_a_server(self):
        """The time in which a server has no work is not among what its time was spent on."""
        for name in ("EPOLL_SERVER", "CLIENT"):
            run("gcc", "-O1", "-pthread", f"-I{SOURCES}", "-x", "c", "-", "-o", self.directory / name, check=True,
                input=getattr(serving_programs, name))
        trace = self.directory / "served.data"
        with start_arctrace("record", "--kernel=bpf", "-b", "64M", "-o", trace, "--", self.directory / "EPOLL_SERVER",
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as recorder:
            self.addCleanup(recorder.kill)
            port = recorder.stdout.readline().strip()
            served_by = states.command_of(recorder.pid)
            time.sleep(0.5)  # without work for more than its time with work
            run(self.directory / "CLIENT", port, "300", served_by, check=True)
            os.kill(served_by, signal.SIGTERM)
            recorder.wait(SECONDS)
        text = read("report", trace)
        served = self.section(text, "No work, in loops that wait for it")
        self.assertIn("epoll_wait", served)
        hottest = self.section(text, "Hottest functions").split("\n")[1]
        share = float(self.section(text, "Spent on").split("\n")[1].split()[1])
        for page in self.shown(trace):
            self.assertEqual(page["serving"].replace(" µs", " us").strip("\n"), served)
            self.assertRegex(hottest, rf" {re.escape(page['hottest'])}( |$)")
            self.assertAlmostEqual(float(page["share"].split()[0]), share, delta=1)


@unittest.skipIf(browser.CHROMIUM is None, "chromium is not installed")
class EarlyPageTest(TracedTest):
    """The page of a trace of ten million calls, from before it has been read to after that."""

    TURNS = 310_000

    @cases.not_in_gate
    def test_before_and_after_the_whole_is_read(self):
        self.trace = trace = record_program(self.directory, self.TURNS)
        pictures = pathlib.Path(os.environ.get("ARCTRACE_PICTURES", self.directory))
        with tempfile.TemporaryDirectory() as directory:
            page = browser.Browser(directory)
            server = Server(trace)
            try:
                page.open(server.url)
                self.early(page, pictures)
                page.wait("arctracePage.facts.is_whole")
                self.late(page, pictures)
                self.assertEqual([one for one in page.problems if " 409 " not in one], [])
            finally:
                page.close()
                server.close()
        trace.unlink()  # the trace is too large for the checks of each trace

    def early(self, page, pictures):
        """The page shows how densely records were written, and calls where one zooms in; the rest is marked as not
        known."""
        page.wait("arctracePage.timeLine.isShown")
        self.assertFalse(page.run("arctracePage.facts.is_whole"))
        pieces = page.run("[...arctracePage.timeLine.whole.values()].map((part) => part.density.start.length)")
        self.assertGreater(sorted(pieces)[1], 20, pieces)
        page.wait("document.querySelector('#pane .reading')")
        self.assertIn("Not known before the whole trace has been read", page.run("document.querySelector('#pane').textContent"))
        self.assertIn("losses not known yet", page.run("document.querySelector('header').textContent"))
        page.screenshot(pictures / "early.png")
        page.run(f"(() => {{ const {{ timeLine }} = arctracePage, at = {DENSEST}; timeLine.look(at, at + 1e4); }})()")
        page.wait("[...arctracePage.timeLine.parts.values()].some((part) => part.exact && part.rows.some((row) => row.level > 5 && row.start.length > 20))")
        page.run("document.getElementById('tab-functions').click()")
        page.wait("document.querySelector('#pane .reading')")
        page.key("r")
        page.wait("document.querySelectorAll('#pane tbody tr').length > 3")
        page.run("document.getElementById('tab-summary').click()")
        page.wait("document.querySelectorAll('#pane tbody tr').length > 3 && !document.querySelector('#pane .reading')")
        page.run(f"arctracePage.timeLine.choose({SHORT_CALL})")
        page.wait("document.querySelector('#pane').textContent.includes('called by')")
        page.screenshot(pictures / "early-call.png")
        page.run("arctracePage.timeLine.canvas.focus()")
        page.key("Escape")
        page.run(f"arctracePage.timeLine.choose({LONG_CALL})")
        page.wait("document.querySelector('#pane').textContent.includes('at least')")
        # All of that happened before the whole trace had been read.
        self.assertFalse(page.run("arctracePage.facts.is_whole"))
        self.kept = page.run("[arctracePage.state.view.from, arctracePage.state.call.level, arctracePage.facts.functions[arctracePage.state.call.what][0]]")

    def late(self, page, pictures):
        """The page has not moved, and knows everything."""
        state = "arctracePage.state"
        page.wait(f"{state}.call && !({state}.call.flags & 384)")
        page.wait("document.querySelector('#pane').textContent.includes('What it called')")
        self.assertNotIn("at least", page.run("document.querySelector('#pane').textContent"))
        self.assertEqual(page.run(f"[{state}.view.from, {state}.call.level, arctracePage.facts.functions[{state}.call.what][0]]"), self.kept)
        self.assertNotIn("not known yet", page.run("document.querySelector('header').textContent"))
        records = read_report(self.trace, "flat")["summary"]["records"]
        self.assertIn(f"{records:,} records, none lost", page.run("document.querySelector('header').textContent"))
        for tab in ("summary", "functions", "flame", "locks"):
            page.run(f"document.getElementById('tab-{tab}').click()")
            page.wait("!document.querySelector('#pane').textContent.includes('reading…')")
            self.assertEqual(page.run("document.querySelectorAll('#pane .reading').length"), 0)
        # A page that begins at a small part of the time counts all records, too.
        page.run("(() => { const { timeLine, state } = arctracePage; timeLine.look(state.call.start, state.call.start + 1000); })()")
        page.wait("location.hash.includes('view=' + Math.floor(arctracePage.state.view.from))")
        page.run("document.documentElement.dataset.ready = ''")
        page.run("location.reload()")
        page.wait("document.documentElement?.dataset.ready === 'true' && arctracePage.facts.is_whole")
        self.assertIn(f"{records:,} records, none lost", page.run("document.querySelector('header').textContent"))
        page.key("0")
        page.wait("!arctracePage.timeLine.asking && [...arctracePage.timeLine.whole.values()].every((part) => !part.density)")
        page.screenshot(pictures / "late.png")


SHIFT = 8  # of Input.dispatchMouseEvent

# What a tab shows of its data; and what the page shows while it reads these.
READ = {"summary": "#pane table", "flame": "#pane .bar [role=status]", "functions": "#pane table", "locks": "#pane"}
SAYS_THAT_IT_READS = """[document.getElementById('pane').textContent, document.getElementById('pane').getAttribute('aria-busy'),
  document.getElementById('busy').hidden]"""

# Elements that are outside of the window, or have more text than space.
CUT_OFF = """[...document.querySelectorAll('header, header .facts, header button, nav, nav button, .bar > *, main')].filter((one) => {
  const box = one.getBoundingClientRect();
  return box.left < 0 || box.right > innerWidth || (one.tagName !== 'MAIN' && one.scrollWidth > one.clientWidth + 1);
}).map((one) => one.className + ' ' + one.textContent.slice(0, 40))"""

# The time at which records were written most densely.
DENSEST = """[...timeLine.whole.values()].flatMap(({ density }) =>
  [...density.start].map((at, i) => [density.bytes[i] / (density.stop[i] - density.start[i] + 1), at])).sort((a, b) => b[0] - a[0])[0][1]"""

# A shown call that begins and ends in view; and one that continues beyond what was read.
SHORT_CALL, LONG_CALL = (f"""(() => {{
  const {{ timeLine, state }} = arctracePage;
  for (const {{ index }} of timeLine.visible()) {{
    for (const row of timeLine.dataOf(index).rows.filter((one) => one.level >= 4)) {{
      const i = [...row.start.keys()].findIndex((k) => {condition});
      if (i >= 0) return {{ lane: index, level: row.level, start: row.start[i], stop: row.stop[i], what: row.what[i], flags: row.flags[i] }};
    }}
  }}
}})()""" for condition in ("row.level > 5 && row.start[k] > state.view.from && row.stop[k] < state.view.until && !row.flags[k]",
                             "(row.flags[k] & 384) === 384"))

# The call of usleep, as something at the pointer; and where the row below the first lane is, which unfolds it.
USLEEP = """(() => {
  const { timeLine, facts } = arctracePage;
  for (const { index } of timeLine.visible()) {
    for (const row of timeLine.dataOf(index)?.rows ?? []) {
      const i = row.level < 4 ? -1 : [...row.what.keys()].find((k) => facts.functions[row.what[k]][0] === 'usleep') ?? -1;
      if (i >= 0) return { lane: index, level: row.level, start: row.start[i], stop: row.stop[i], what: row.what[i], flags: row.flags[i] };
    }
  }
})()"""
# The colour of a bar of the first lane at a time, at a level: of `main` without one.
MAIN_PIXEL = """(ns, level) => {
  const { timeLine } = arctracePage, { canvas } = timeLine, ratio = devicePixelRatio;
  timeLine.paint();
  const y = timeLine.topOf(timeLine.visible()[0].y) + (level > 4 ? level - 4 : 0) * 15 + 1;
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  return [...copy.getImageData(Math.floor(timeLine.xOf(ns) * ratio), Math.floor(y * ratio), 1, 1).data].slice(0, 3);
}"""
# When the first lane's longest wait ended.
END_OF_WAIT = """(() => {
  const { timeLine } = arctracePage;
  const row = timeLine.dataOf(timeLine.visible()[0].index).rows.find((one) => one.level === 2);
  const long = [...row.start.keys()].sort((a, b) => row.stop[b] - row.start[b] - row.stop[a] + row.start[a]);
  return row.stop[long[0]];
})()"""
# The tip at the pointer in the middle of the loader's work in the first lane that has it.
LOADER_TIP = """(() => {
  const { timeLine, facts } = arctracePage;
  const lane = timeLine.visible().find(({ index }) => facts.lanes[index].parts.some(([what]) => facts.functions[what][0] === '[loader]'));
  const [, start, stop] = facts.lanes[lane.index].parts.find(([what]) => facts.functions[what][0] === '[loader]');
  return timeLine.tipOf(timeLine.at(timeLine.xOf((start + stop) / 2), timeLine.topOf(lane.y) + 3));
})()"""
DEEPER = """(() => {
  const box = arctracePage.timeLine.canvas.getBoundingClientRect(), lane = arctracePage.timeLine.visible()[0];
  return [box.left + 60, box.top + lane.y + lane.height - 14];
})()"""

# Pixels of the time line in the light theme's colours for gaps and for the critical path, which no call and no state has.
HATCHED, PATH_PIXELS = (f"""(() => {{
  const {{ canvas }} = arctracePage.timeLine;
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", {{ willReadFrequently: true }});
  copy.drawImage(canvas, 0, 0);
  const {{ data }} = copy.getImageData(0, 0, canvas.width, canvas.height);
  let found = 0;
  for (let i = 0; i < data.length; i += 4) if ({condition}) ++found;
  return found;
}})()""" for condition in
                         ("data[i] > 165 && data[i + 1] < 125 && data[i + 2] < 125",
                          "data[i] > 180 && data[i + 1] < 30 && data[i + 2] > 130 && data[i + 2] < 160"))


# The longest gap of the threads that have a lane, because some have no records any more.
LONGEST_GAP = """arctracePage.facts.gaps
  .filter((gap) => gap.from_ns !== null && arctracePage.facts.lanes.some((lane) => lane.tid === gap.tid))
  .sort((a, b) => b.to_ns - b.from_ns - (a.to_ns - a.from_ns))[0]"""

# The tip at the pointer in the middle of that gap, at the edge of its thread's lane.
GAP_TIP = f"""(() => {{
  const {{ timeLine, facts }} = arctracePage, gap = {LONGEST_GAP};
  const lane = timeLine.visible().find(({{ index }}) => facts.lanes[index].tid === gap.tid);
  return timeLine.tipOf(timeLine.at(timeLine.xOf((gap.from_ns + gap.to_ns) / 2), lane.y + 1));
}})()"""

# Pans by 7 pixels in each frame; returns the times between frames and of painting, sorted, in ms.
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
class LargeTest(TracedTest):
    """The page of a trace of ten million calls."""

    TURNS = 310_000

    def test_ten_million_calls(self):
        trace = record_program(self.directory, self.TURNS)
        calls = sum(row["calls"] for row in read_report(trace, "flat")["functions"])
        html = self.directory / "trace.html"
        begin = time.monotonic()
        read("export", "--to=html", "-o", html, trace)
        print(f"{calls} calls, {trace.stat().st_size} bytes; html: {html.stat().st_size} bytes in {time.monotonic() - begin:.1f} s")
        self.assertLessEqual(html.stat().st_size, 5_000_000)
        begin = time.monotonic()
        server = Server(trace)
        print(f"served after {time.monotonic() - begin:.1f} s")
        try:
            server.wait_whole()
            print(f"read after {time.monotonic() - begin:.1f} s")
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
        trace.unlink()  # the trace is too large for the checks of each trace

    def reaches_each_call(self, server):
        """A stretch of 20 us has all its calls, one by one, although all of the trace together has density buckets. (In
        a longer stretch a pixel is longer than a nanosecond, and there are calls of a few.)"""
        summary = server.api("summary")
        lane = max(range(len(summary["lanes"])), key=lambda i: summary["lanes"][i]["calls"])
        begin = self.busiest(server, lane, summary["from_ns"], summary["until_ns"])
        values = {"pixel": 1, "lanes": lane, "from": begin, "until": begin + 20_000}
        self.assertGreater(row_sums(server.api("timeline", **values))[1], 0)
        begin = time.monotonic()
        answer = server.api("timeline", exact=1, **values)
        print(f"read again in {time.monotonic() - begin:.1f} s")
        exact, crowded = row_sums(answer)
        self.assertGreater(exact, 50)
        self.assertLess(crowded, exact / 10)  # calls that last no nanosecond at all

    def busiest(self, server, lane, begin, end):
        """The begin of the 20 us, or a little more, that have most short calls of a lane: beside other work a thread
        may be without a CPU for long."""
        answer = server.api("timeline", pixel=20_000, lanes=lane, **{"from": begin, "until": end})
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
    cases.main()
